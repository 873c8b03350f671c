import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../dev/root.js';

/** As test files say it: of themselves, or of a test or a group of tests. */
const TAG = /@module-tag attack\b|\btags: 'attack'/;

/** Test files, from the root of the project, with tests that play an attacker. */
export async function attackFiles(): Promise<string[]> {
  const names = await readdir(path.join(projectRoot, 'test'), { recursive: true });
  const tests = names.filter((name) => name.endsWith('.test.ts')).map((name) => `test/${name}`);
  const tagged = await Promise.all(
    tests.map(async (file) => TAG.test(await readFile(path.join(projectRoot, file), 'utf8'))),
  );
  return tests.filter((_, index) => tagged[index]).sort();
}
