import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../dev/root.js';

/** Marks of attack tests: for a whole file, or for a test or a group of tests. */
const TAG = /@module-tag attack\b|\btags: 'attack'/;

/** Returns the test files that contain attacks, as paths from the project's root. */
export async function attackFiles(): Promise<string[]> {
  const names = await readdir(path.join(projectRoot, 'test'), { recursive: true });
  const tests = names.filter((name) => name.endsWith('.test.ts')).map((name) => `test/${name}`);
  const tagged = await Promise.all(
    tests.map(async (file) => TAG.test(await readFile(path.join(projectRoot, file), 'utf8'))),
  );
  return tests.filter((_, index) => tagged[index]).sort();
}
