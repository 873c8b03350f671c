import { run } from './bootstrap.mjs';

await run('rehearse');
