import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  DefaultLogger,
  bundleWorkflowCode,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { projectRoot } from '../../../dev/root.js';

/** Files that a bundle replaces, mapped to their replacements; both relative to the project. */
export type Replacements = Readonly<Record<string, string>>;

const CACHE = path.join(projectRoot, 'node_modules', '.cache', 'workflow-bundles');
/** Folders that a bundle is built from; `src` and `activities` contribute only a few names and values. */
const SOURCES = ['workflows', 'activities', 'src', 'test/workflows/support'];

const made = new Map<string, Promise<WorkflowBundleWithSourceMap>>();

/**
 * Returns the workflow bundle of the current sources. Bundling takes seconds of all cores, and every test
 * file is a process of its own: the bundle is cached for all of them until a source changes.
 */
export function workflowBundle(replaced: Replacements = {}): Promise<WorkflowBundleWithSourceMap> {
  const key = JSON.stringify(replaced);
  const bundle = made.get(key) ?? keptBundle(key, replaced);
  made.set(key, bundle);
  return bundle;
}

async function keptBundle(
  key: string,
  replaced: Replacements,
): Promise<WorkflowBundleWithSourceMap> {
  const name = createHash('sha256').update(key).digest('hex').slice(0, 8);
  const current = `${name}-${await digest()}.js`;
  const file = path.join(CACHE, current);
  try {
    return { code: await readFile(file, 'utf8'), sourceMap: '' }; // the map is inside the code
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const bundle = await bundleNow(replaced);
  await mkdir(CACHE, { recursive: true });
  for (const other of await readdir(CACHE)) {
    const isOld = other.startsWith(name) && !other.startsWith(current);
    if (isOld) await rm(path.join(CACHE, other), { force: true });
  }
  const fresh = `${file}.${randomUUID()}`; // written atomically: other processes may read the file at any moment
  await writeFile(fresh, bundle.code);
  await rename(fresh, file);
  return bundle;
}

/** Returns a hash that changes with every source and with the SDK. */
async function digest(): Promise<string> {
  const hash = createHash('sha256').update(
    await readFile(path.join(projectRoot, 'package-lock.json')),
  );
  for (const folder of SOURCES) {
    const names = await readdir(path.join(projectRoot, folder), { recursive: true });
    for (const file of names.filter((each) => each.endsWith('.ts')).sort()) {
      hash.update(`\0${file}\0`).update(await readFile(path.join(projectRoot, folder, file)));
    }
  }
  return hash.digest('hex').slice(0, 16);
}

function bundleNow(replaced: Replacements): Promise<WorkflowBundleWithSourceMap> {
  const inSources = (file: string) => path.join(projectRoot, file);
  const alias = Object.fromEntries(
    Object.entries(replaced).map(([from, to]) => [inSources(from), inSources(to)]),
  );
  return bundleWorkflowCode({
    workflowsPath: inSources('workflows/index.ts'),
    logger: new DefaultLogger('ERROR'),
    webpackConfigHook: (config) => ({
      ...config,
      // Each worker parses the map; source texts, half of its size, do not appear in test traces.
      devtool: 'inline-nosources-source-map',
      resolve: { ...config.resolve, alias: { ...config.resolve?.alias, ...alias } },
    }),
  });
}
