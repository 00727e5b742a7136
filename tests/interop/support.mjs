// What the suites share.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

/** The path in the environment variable that CMake has set for the suite. */
export function program(variable) {
    const path = process.env[variable];
    if (!path) throw new Error(`${variable} is not set: run this by ctest -L interop`);
    return path;
}

/** Runs a program to its end, a minute at most: its exit status, standard output by lines, and standard error. */
export function run(path, args, input = '') {
    return new Promise((resolve, reject) => {
        const child = spawn(path, args, {timeout: 60_000, killSignal: 'SIGKILL'});
        let out = '', err = '';
        child.stdout.on('data', (bytes) => { out += bytes; });
        child.stderr.on('data', (bytes) => { err += bytes; });
        child.on('error', reject);
        child.on('close', (status, signal) => resolve({status: status ?? signal, lines: out.split('\n').filter(Boolean), err}));
        child.stdin.on('error', () => {});  // one that reads no input
        child.stdin.end(input);
    });
}

/** Runs `reagent mock` with fixtures while `use(origin)` runs. */
export async function withMock(reagent, fixtures, use) {
    const directory = mkdtempSync(join(tmpdir(), 'reagent-mock-'));
    const file = join(directory, 'fixtures.json');
    writeFileSync(file, JSON.stringify({fixtures}));
    const child = spawn(reagent, ['mock', '--port', '0', '--fixtures', file], {stdio: ['ignore', 'pipe', 'inherit']});
    try {
        const origin = await new Promise((resolve, reject) => {
            let out = '';
            child.stdout.on('data', (bytes) => {
                out += bytes;
                const found = /listening on (http:\/\/[^\s/]+)/.exec(out);
                if (found) resolve(found[1]);
            });
            child.on('error', reject);
            child.on('exit', () => reject(new Error('the mock ended before it was ready')));
        });
        return await use(origin);
    } finally {
        child.kill('SIGTERM');
        rmSync(directory, {recursive: true});
    }
}

/** What the mock has been sent, by path. */
export async function journal(origin) {
    const lines = await (await fetch(`${origin}/__journal`)).text();
    return lines.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
