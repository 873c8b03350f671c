import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  DefaultLogger,
  bundleWorkflowCode,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { projectRoot } from '../../../dev/root.js';

/** The files in place of which a bundle has others, both from the project's folder. */
export type Replacements = Readonly<Record<string, string>>;

const CACHE = path.join(projectRoot, 'node_modules', '.cache', 'workflow-bundles');
/** What a bundle is made of: names and values of `src` and `activities`, though few of them. */
const SOURCES = ['workflows', 'activities', 'src', 'test/workflows/support'];

const made = new Map<string, Promise<WorkflowBundleWithSourceMap>>();

/**
 * The workflows as they are in the source right now. Bundling takes seconds of all cores, and every
 * test file is a process: the bundle is kept for all of them, and for as long as no source changes.
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
    return { code: await readFile(file, 'utf8'), sourceMap: '' }; // the map is in the code
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const bundle = await bundleNow(replaced);
  await mkdir(CACHE, { recursive: true });
  for (const other of await readdir(CACHE)) {
    const isOld = other.startsWith(name) && !other.startsWith(current);
    if (isOld) await rm(path.join(CACHE, other), { force: true });
  }
  const fresh = `${file}.${randomUUID()}`; // whole at once: others may look for it just now
  await writeFile(fresh, bundle.code);
  await rename(fresh, file);
  return bundle;
}

/** Changes with every source, and with the SDK. */
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
      // Each worker reads the map anew: half of it would be texts that the traces of tests do not show.
      devtool: 'inline-nosources-source-map',
      resolve: { ...config.resolve, alias: { ...config.resolve?.alias, ...alias } },
    }),
  });
}
