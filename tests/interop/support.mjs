// What the suites share.
import {spawn} from 'node:child_process';

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
