// Our WebSocket client against the server of the npm package `ws`.
import assert from 'node:assert/strict';
import {once} from 'node:events';
import {mkdtempSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {WebSocketServer} from 'ws';

import {program, run} from './support.mjs';

const client = program('REAGENT_WEBSOCKET_CLIENT');

function sum(bytes) {
    let s = 0;
    for (const b of bytes) s = (Math.imul(s, 31) + b) >>> 0;
    return s;
}

function pattern(n, values) {
    const bytes = Buffer.alloc(n);
    for (let i = 0; i < n; ++i) bytes[i] = values === 26 ? 97 + (i * 31) % 26 : (i * 31) % 251;
    return bytes;
}

function message(kind, bytes) {
    bytes = Buffer.from(bytes);
    const line = {kind, size: bytes.length, sum: sum(bytes)};
    if (kind === 'text' && bytes.length <= 100) line.text = bytes.toString();
    return line;
}

/** Runs the client against a server whose sockets `serve` gets; what the client printed, and each socket's close. */
async function talk(serve, args, {path, options} = {}) {
    const http = createServer();
    const server = new WebSocketServer({server: http, ...options});
    const closes = [], failures = [];
    server.on('connection', (socket, request) => {
        socket.on('close', (code, reason) => closes.push([code, reason.toString()]));
        socket.on('error', (e) => failures.push(e.message));
        serve(socket, request);
    });
    http.listen(path ?? {port: 0, host: '127.0.0.1'});
    await once(http, 'listening');
    const url = path ? 'ws://localhost/chat' : `ws://127.0.0.1:${http.address().port}/chat`;
    const done = await run(client, [url, ...(path ? [`unix=${path}`] : []), ...args]);
    for (const socket of server.clients) {
        if (socket.readyState !== socket.CLOSED) await once(socket, 'close');
    }
    server.close();
    http.close();
    assert.equal(done.err, '');
    assert.deepEqual(failures, []);
    return {status: done.status, lines: done.lines.map((line) => JSON.parse(line)), closes};
}

const echo = (socket) => socket.on('message', (data, binary) => socket.send(data, {binary}));

test('text and binary come back as they were', async () => {
    const words = 'Grüße, 世界 🌍';
    const r = await talk(echo, [`text=${words}`, 'read', 'text=', 'read', 'binary=0', 'read', 'binary=125', 'read', 'binary=126', 'read', 'binary=65536', 'read', 'close=1000,']);
    assert.deepEqual(r.lines, [{protocol: ''}, message('text', words), message('text', ''), message('binary', ''), message('binary', pattern(125, 251)),
        message('binary', pattern(126, 251)), message('binary', pattern(65536, 251)), {proper: true}]);
    assert.equal(r.status, 0);
    assert.deepEqual(r.closes, [[1000, '']]);
});

test('large messages pass whole, both ways', async () => {
    const n = 8 * 1024 * 1024;
    const r = await talk(echo, [`texts=${n}`, 'read', `binary=${n}`, 'read', 'close=1000,']);
    assert.deepEqual(r.lines.slice(1), [message('text', pattern(n, 26)), message('binary', pattern(n, 251)), {proper: true}]);
});

test('a message over the limit is refused with 1009', async () => {
    const r = await talk((socket) => socket.send(Buffer.alloc(301)), ['max=300', 'read']);
    assert.equal(r.status, 1);
    assert.match(r.lines[1].error, /a message is larger than the limit/);
    assert.deepEqual(r.closes.map(([code]) => code), [1009]);
});

test('the parts of a fragmented message are joined, with pings between them', async () => {
    const r = await talk((socket) => {
        const parts = ['Gr', 'ü', 'ße, ', '世', '界'].map((s) => Buffer.from(s));
        const bytes = Buffer.concat(parts);
        // Cut inside characters as well.
        for (let i = 0; i < bytes.length; ++i) {
            socket.send(bytes.subarray(i, i + 1), {binary: false, fin: i + 1 === bytes.length});
            if (i % 4 === 0) socket.ping(`ping ${i}`);
        }
        for (let i = 0; i < 3; ++i) socket.send(pattern(70_000, 251).subarray(i * 20_000, i === 2 ? 70_000 : (i + 1) * 20_000), {binary: true, fin: i === 2});
    }, ['read', 'read', 'close=1000,']);
    assert.deepEqual(r.lines.slice(1), [message('text', 'Grüße, 世界'), message('binary', pattern(70_000, 251)), {proper: true}]);
});

test('pings are answered with what they carry, and ours are counted', async () => {
    const pongs = [], pings = [];
    const r = await talk((socket) => {
        echo(socket);
        socket.on('pong', (data) => {
            pongs.push(data.toString());
            socket.send('pong seen');
        });
        socket.on('ping', (data) => pings.push(data.toString()));
        socket.ping('are you there');
    }, ['read', 'ping=hello', `ping=${'x'.repeat(125)}`, 'text=behind', 'read', 'pongs', 'close=1000,']);
    assert.deepEqual(r.lines.slice(1), [message('text', 'pong seen'), message('text', 'behind'), {pongs: 2}, {proper: true}]);
    assert.deepEqual(pongs, ['are you there']);
    assert.deepEqual(pings, ['hello', 'x'.repeat(125)]);
});

test('close codes and reasons arrive on both sides', async () => {
    for (const [code, reason] of [[1000, 'done'], [1001, 'leaving'], [1011, 'schlimm: ü'], [3000, ''], [4999, 'x'.repeat(123)]]) {
        const ours = await talk(() => {}, [`close=${code},${reason}`]);
        assert.deepEqual(ours.lines.slice(1), [{proper: true}]);
        assert.deepEqual(ours.closes, [[code, reason]]);
        const theirs = await talk((socket) => socket.close(code, reason), ['read']);
        assert.deepEqual(theirs.lines.slice(1), [{closed: code, reason}]);
        assert.deepEqual(theirs.closes, [[code, '']], 'answered with the same code');
    }
    const silent = await talk((socket) => socket.close(), ['read']);
    assert.deepEqual(silent.lines.slice(1), [{closed: 1005, reason: ''}]);
});

test('a connection that is cut is an error', async () => {
    const r = await talk((socket) => {
        socket.send('one');
        setImmediate(() => socket._socket.end());
    }, ['read', 'read']);
    assert.equal(r.status, 1);
    assert.deepEqual(r.lines[1], message('text', 'one'));
    assert.match(r.lines[2].error, /without a close frame/);
});

test('the sub-protocol is the one the server chooses, and compression is not agreed on', async () => {
    const options = {handleProtocols: (offered) => [...offered].at(-1), perMessageDeflate: true};
    const extensions = [];
    const r = await talk((socket) => {
        extensions.push(socket.extensions);
        socket.send('x'.repeat(5000));
    }, ['protocol=chat.v2', 'protocol=chat.v1', 'read', 'close=1000,'], {options});
    assert.deepEqual(r.lines, [{protocol: 'chat.v1'}, message('text', 'x'.repeat(5000)), {proper: true}]);
    assert.deepEqual(extensions, ['']);
});

test('a refused handshake says the status', async () => {
    const options = {verifyClient: (info, answer) => answer(false, 403, 'not you')};
    const r = await talk(() => {}, ['read'], {options});
    assert.equal(r.status, 1);
    assert.match(r.lines[0].error, /403/);
});

test('over a Unix-domain socket', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'reagent-interop-'));
    t.after(() => rmSync(directory, {recursive: true}));
    let host;
    const r = await talk((socket, request) => {
        host = request.headers.host;
        echo(socket);
    }, ['text=hello', 'read', 'binary=100000', 'read', 'close=4001,bye'], {path: join(directory, 's')});
    assert.deepEqual(r.lines, [{protocol: ''}, message('text', 'hello'), message('binary', pattern(100_000, 251)), {proper: true}]);
    assert.deepEqual(r.closes, [[4001, 'bye']]);
    assert.equal(host, 'localhost');
});
