// Transpiles every TypeScript file, copies the pages' assets, and bundles the workflows, the helper in
// containers and the programs, which start in half the time that thousands of files take:
//
//     node scripts/build.mjs         dist/      for production only
//     node scripts/build.mjs --dev   dist-dev/  also the developers' programs: `npm start`, benchmarks ...
//
// Does nothing if no source has changed. Types are checked by `npm test`, not here.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { requireRoom, root, sentence } from './bootstrap.mjs';

const isDev = process.argv.includes('--dev');
const dist = path.join(root, isDev ? 'dist-dev' : 'dist');
const PRODUCT = [
  'src',
  'api',
  'workflows',
  'activities',
  'temporal',
  'worker',
  'scripts/admin-links.ts',
  'scripts/check-ledger.ts',
  'scripts/doctor.ts',
  'scripts/icecast-config.ts',
  'scripts/migrate.ts',
  'scripts/rotate-keys.ts',
];
// Benchmarks run the tests' small agent image, and the history recorder uses the tests' fakes.
const DEV = [
  'dev',
  'scripts',
  'bench',
  'test/agent-image',
  'test/chaos',
  'test/support/chain/rpc-proxy.ts',
  'test/support/agent-places.ts',
  'test/support/docker-remains.ts',
  'test/support/insert-row.ts',
  'test/support/random.ts',
  'test/support/redis.ts',
  'test/support/run-in-container.ts',
  'test/support/tcp-proxy.ts',
  'test/support/until.ts',
  'test/workflows/support',
  'test/workflows/recipe',
];
/** Files of settings that the programs read at their start. */
const SHIPPED = ['models.json', 'datafeeds.json'];
/** The shipped skills, which the API publishes at its start. */
const SKILLS = 'skills';
const PROGRAMS = [
  'api/main.ts',
  'api/containers/main.ts',
  'worker/main.ts',
  'worker/payments.ts',
  ...PRODUCT.filter((file) => file.endsWith('.ts')),
  ...(isDev ? ['scripts/start.ts'] : []),
];
/** Packages excluded from bundles: they read files of their own, are native, or are loaded by name. */
const APART = [
  '@temporalio/*',
  'bcrypt',
  'dockerode',
  'ioredis',
  'pg',
  'pino',
  'sequelize',
  'swagger-ui-dist',
];
const sources = isDev ? [...PRODUCT, ...DEV] : PRODUCT;
const bundled = ['src', 'workflows', 'activities'];

try {
  await ifChanged('sources', sources, transpile);
  await ifChanged('shipped', SHIPPED, copyShipped);
  await ifChanged('skills', [SKILLS], copySkills);
  await ifChanged('programs', sources, bundlePrograms);
  await ifChanged('workspace-helper', ['src'], bundleHelper);
  await ifChanged('workflow-bundle', bundled, bundleWorkflows);
  recordCommit();
} catch (error) {
  console.error(sentence(error));
  process.exit(1);
}

/** Runs `make` unless the sources are unchanged since its last success. */
async function ifChanged(name, folders, make) {
  const files = [...new Set(folders.flatMap(sourcesIn))].sort();
  const hash = createHash('sha256').update(readFileSync(path.join(root, 'package-lock.json')));
  for (const file of [...files, 'scripts/build.mjs']) {
    hash.update(`\0${file}\0`).update(readFileSync(path.join(root, file)));
  }
  const stamp = path.join(dist, `.${name}`);
  const wanted = hash.digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  requireRoom(50_000_000);
  mkdirSync(dist, { recursive: true });
  await make(files);
  writeFileSync(stamp, wanted);
}

function sourcesIn(folder) {
  const full = path.join(root, folder);
  if (!existsSync(full)) return [];
  if (/\.(ts|json)$/.test(folder)) return [folder];
  return readdirSync(full, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|js|css|ico|md)$/.test(file) && !/\.(d|test)\.ts$/.test(file))
    .map((file) => path.join(folder, file));
}

async function transpile(files) {
  const started = performance.now();
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: root,
    entryPoints: files,
    outdir: dist,
    outbase: root,
    loader: { '.js': 'copy', '.css': 'copy', '.ico': 'copy' },
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: 'linked',
    logLevel: 'warning',
  });
  removeOrphans(new Set(files.map((file) => file.replace(/\.ts$/, '.js'))));
  console.error(`Built ${files.length} files in ${seconds(started)}.`);
}

function copyShipped() {
  for (const file of SHIPPED) copyFileSync(path.join(root, file), path.join(dist, file));
}

function copySkills() {
  cpSync(path.join(root, SKILLS), path.join(dist, SKILLS), { recursive: true });
}

/** Bundles the programs into the places of their source files; code that several use is in `chunks/`, once. */
async function bundlePrograms() {
  const started = performance.now();
  const { build } = await import('esbuild');
  const chunks = path.join(dist, 'chunks');
  rmSync(chunks, { recursive: true, force: true });
  await build({
    absWorkingDir: root,
    entryPoints: PROGRAMS,
    outdir: dist,
    outbase: root,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[hash]',
    external: APART,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    // CommonJS modules in a bundle require Node's own modules.
    banner: {
      js: `import{createRequire as requireOf}from'node:module';const require=requireOf(import.meta.url);`,
    },
    // Naming a closure at run time costs CPU whenever a request makes one.
    keepNames: false,
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
  });
  console.error(`Bundled ${PROGRAMS.length} programs in ${seconds(started)}.`);
}

/** Removes built files without a source, so that no old build of a deleted source is run. */
function removeOrphans(made) {
  for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!file.includes(path.sep) || !/\.js(\.map)?$/.test(file)) continue;
    if (file.startsWith(`chunks${path.sep}`)) continue;
    if (!made.has(file.replace(/\.map$/, ''))) rmSync(path.join(dist, file));
  }
}

async function bundleWorkflows() {
  const workflowsPath = path.join(dist, 'workflows', 'index.js');
  if (!existsSync(workflowsPath)) return;
  const started = performance.now();
  console.error('Bundling the workflows (a few seconds) ...');
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
  const { code } = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('WARN') });
  const bundle = path.join(dist, 'workflow-bundle.js');
  writeFileSync(`${bundle}.new`, code);
  renameSync(`${bundle}.new`, bundle);
  console.error(`Bundled the workflows in ${seconds(started)}.`);
}

/** Bundles one file without libraries, small enough to be an argument of the container that runs it. */
async function bundleHelper() {
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: root,
    entryPoints: ['src/workspace/helper-program.ts'],
    outfile: path.join(dist, 'workspace-helper.js'),
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    logLevel: 'warning',
  });
}

/**
 * Stores the commit of the sources for the programs; without a git repository there is none. Writes
 * nothing if the commit is the same, since the disk of a built clone may be read-only.
 */
function recordCommit() {
  const file = path.join(dist, 'commit.txt');
  const commit = currentCommit();
  const recorded = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (commit === recorded) return;
  if (commit === undefined) rmSync(file);
  else writeFileSync(file, commit);
}

/** Returns the line of git with the commit; undefined without a repository. */
function currentCommit() {
  if (!existsSync(path.join(root, '.git'))) return undefined;
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
    timeout: 10_000,
  });
  return /^[\da-f]{40,64}\n$/.test(stdout ?? '') ? stdout : undefined;
}

function seconds(started) {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`;
}
