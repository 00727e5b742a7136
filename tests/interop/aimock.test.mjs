// `reagent run` against the mock server of the npm package `@copilotkit/aimock`: whole and streamed, tools, faults, and what its journal says we sent.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';

import {program, run} from './support.mjs';

const reagent = program('REAGENT');
const greeting = 'Grüße, 世界 from the other side of the wire.';
const fixtures = [
    {match: {hasToolResult: true}, response: {content: 'It makes 22.'}},
    {match: {userMessage: 'add'}, response: {toolCalls: [{name: 'calculate', arguments: '{"expression":"20 + 2"}'}]}},
    {match: {userMessage: 'hello'}, response: {content: greeting}},
];
process.env.OPENAI_API_KEY = 'test-key-of-ours';

let origin, server;
const directory = mkdtempSync(join(tmpdir(), 'reagent-aimock-'));

async function freePort() {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const {port} = probe.address();
    probe.close();
    await once(probe, 'close');
    return port;
}

before(async () => {
    const file = join(directory, 'fixtures.json');
    writeFileSync(file, JSON.stringify({fixtures}));
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    server = spawn(process.execPath, ['node_modules/.bin/llmock', '-p', String(port), '-f', file], {stdio: ['ignore', 'pipe', 'inherit']});
    await new Promise((resolve, reject) => {
        server.stdout.on('data', (bytes) => { if (String(bytes).includes('listening')) resolve(); });
        server.on('exit', () => reject(new Error('llmock ended before it was ready')));
    });
});
after(() => {
    server.kill();
    rmSync(directory, {recursive: true});
});

async function control(method, path, body) {
    const answer = await fetch(`${origin}/__aimock/${path}`, {method, headers: {'content-type': 'application/json'}, body: body && JSON.stringify(body)});
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return answer.json();
}

/** By wire: where it is, and the path we must have asked. */
const wires = {
    openai: {base: '/v1', path: '/v1/chat/completions'},
};

async function ask(name, question, ...more) {
    await control('POST', 'reset/journal');
    const done = await run(reagent, ['run', question, '--provider', name, '--model', 'm', '--base-url', origin + wires[name].base, '--json', ...more]);
    const sent = (await control('GET', 'journal')).map((e) => ({path: e.path.split('?')[0], body: e.body}));
    return {...done, result: done.lines.length ? JSON.parse(done.lines.at(-1)) : undefined, sent};
}

for (const [name, wire] of Object.entries(wires)) {
    for (const stream of [true, false]) {
        const flags = stream ? [] : ['--no-stream'];
        const path = wire.path;
        test(`${name} ${stream ? 'streamed' : 'whole'}: text and tools`, async () => {
            const plain = await ask(name, 'hello', ...flags);
            assert.deepEqual([plain.status, plain.result?.text], [0, greeting], plain.err);
            assert.deepEqual(plain.sent.map((e) => e.path), [path]);

            const tools = await ask(name, 'add', '--tools', 'calculate', ...flags);
            assert.deepEqual([tools.status, tools.result?.text], [0, 'It makes 22.'], tools.err);
            assert.deepEqual(tools.sent.map((e) => e.path), [path, path]);
            for (const {body} of tools.sent) {
                assert.match(JSON.stringify(body), /"calculate"/);
                assert.ok(!JSON.stringify(body).includes('test-key-of-ours'), 'the key is where it does not belong');
            }
            assert.doesNotMatch(JSON.stringify(tools.sent[0].body.messages), /22/);
            assert.match(JSON.stringify(tools.sent[1].body.messages), /\b22\b/);
        });
    }

    for (const [fault, expected] of [['dropRate', /500|chaos/i], ['malformedRate', /JSON|stream|end/i], ['disconnectRate', /clos|reset|end/i], ['rateLimitRate', /429|rate/i]]) {
        test(`${name} says what went wrong: ${fault}`, async () => {
            await control('POST', 'chaos', {[fault]: 1});
            try {
                const failed = await ask(name, 'hello');
                assert.equal(failed.status, 1, failed.err);
                assert.match(JSON.stringify(failed.result), expected);
                assert.equal(failed.sent.length, 1);
                assert.ok(!JSON.stringify(failed.result).includes('test-key-of-ours'));
            } finally {
                await control('DELETE', 'chaos');
            }
        });
    }
}

test('a model that fails for good is asked as often as told', async () => {
    await control('POST', 'chaos', {dropRate: 1});
    try {
        const failed = await ask('openai', 'hello', '--retry', '2');
        assert.equal(failed.status, 1, failed.err);
        assert.equal(failed.sent.length, 3);
    } finally {
        await control('DELETE', 'chaos');
    }
});
