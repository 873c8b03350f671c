import { writeFileSync } from 'node:fs';
import { COMPILED, compileEscrow } from './compile-contracts.js';

writeFileSync(COMPILED, await compileEscrow());
