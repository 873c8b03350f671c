import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';

const packageFile = z.object({ version: z.string() });

/** Returns this release: the version in the nearest `package.json` above, or `unknown` without one. */
export function readRelease(folder = path.dirname(fileURLToPath(import.meta.url))): string {
  const file = path.join(folder, 'package.json');
  if (existsSync(file)) {
    const found = packageFile.safeParse(tryParseJson(readFileSync(file, 'utf8')));
    return found.data?.version ?? 'unknown';
  }
  const above = path.dirname(folder);
  return above === folder ? 'unknown' : readRelease(above);
}
