// Sends requests to every operation of every listener for FUZZ_MINUTES, like test/fuzz:
//
//     FUZZ_MINUTES=10 FUZZ_SEED=1 npm run fuzz
//
// A run with the same seed sends the same requests.
import { run } from './bootstrap.mjs';

process.env.FUZZ_MINUTES ??= '10';
process.env.FUZZ_SEED ??= String(Date.now() % 1_000_000);
console.log(`Fuzzing for ${process.env.FUZZ_MINUTES} minutes, FUZZ_SEED=${process.env.FUZZ_SEED}`);
process.argv.push('test/fuzz/fuzz.long.test.ts');
await run('test');
