import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

const run = promisify(execFile);
const dist = path.join(projectRoot, 'dist');

test('npm run build builds exactly the production code, without tests, benchmarks and dev', async () => {
  await run(process.execPath, [path.join('scripts', 'build.mjs')], { cwd: projectRoot });
  const made = readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => file.endsWith('.js'));
  const rooms = new Set(made.map((file) => (file.includes('/') ? file.split('/')[0] : '')));
  expect([...rooms].sort()).toEqual(
    ['', 'activities', 'api', 'chunks', 'scripts', 'src', 'temporal', 'worker', 'workflows'].sort(),
  );
  expect(made.filter((file) => !file.includes('/')).sort()).toEqual([
    'workflow-bundle.js',
    'workspace-helper.js',
  ]);
  expect(made.filter((file) => file.startsWith('scripts/'))).toEqual([
    'scripts/admin-links.js',
    'scripts/check-ledger.js',
    'scripts/doctor.js',
    'scripts/icecast-config.js',
    'scripts/migrate.js',
    'scripts/rotate-keys.js',
  ]);
  for (const program of ['api/main.js', 'worker/main.js']) {
    expect(existsSync(path.join(dist, program))).toBe(true);
  }

  const programs = made.filter((file) => /^(api|worker|chunks)\/|helper/.test(file));
  for (const program of programs) {
    const code = readFileSync(path.join(dist, program), 'utf8');
    expect(code, `${program} names no closure at run time`).not.toMatch(/__name\(/);
  }

  const started = run(
    process.execPath,
    ['--enable-source-maps', path.join(dist, 'api', 'main.js')],
    {
      env: {},
    },
  );
  await expect(started, 'which is one bundle, and says where in the sources').rejects.toMatchObject(
    {
      stdout: expect.stringMatching(
        /"level":60,.*DATABASE_URL is missing.*src\/platform\/environment\/read\.ts:\d+/,
      ),
      stderr: expect.stringMatching(/^The environment is not usable:\n[^]*DATABASE_URL is missing/),
    },
  );
});
