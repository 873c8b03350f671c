import { readFileSync, writeFileSync } from 'node:fs';
import { API_PAGE, withErrorCodes } from './error-codes-section.js';

writeFileSync(API_PAGE, withErrorCodes(readFileSync(API_PAGE, 'utf8')));
