import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';

const packageFile = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string().default(''),
  repository: z.union([z.string(), z.object({ url: z.string() })]).optional(),
});

/** The file in which a build stores its commit, beside the programs. */
const COMMIT_FILE = 'commit.txt';

/** The package of this program, and the commit of its build. */
export interface Package {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** Address of the sources; null where the package names none. */
  readonly repository: string | null;
  /** Null for a program that was not built from a git repository. */
  readonly commit: string | null;
}

const HERE = path.dirname(fileURLToPath(import.meta.url));

/** Returns the nearest package above a folder; undefined without one. */
export function readPackage(folder = HERE, commit: string | null = null): Package | undefined {
  const built = path.join(folder, COMMIT_FILE);
  const known = commit ?? (existsSync(built) ? readFileSync(built, 'utf8').trim() : null);
  const file = path.join(folder, 'package.json');
  if (existsSync(file)) {
    const { data } = packageFile.safeParse(tryParseJson(readFileSync(file, 'utf8')));
    if (data === undefined) return undefined;
    const { description, name, repository, version } = data;
    const url = typeof repository === 'object' ? repository.url : repository;
    return { name, version, description, repository: url ?? null, commit: known };
  }
  const above = path.dirname(folder);
  return above === folder ? undefined : readPackage(above, known);
}

/** Returns this release: the version in the nearest `package.json` above, or `unknown` without one. */
export const readRelease = (folder = HERE): string => readPackage(folder)?.version ?? 'unknown';
