import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

const CONFIG = '.dependency-cruiser.mjs';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-rooms-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Returns the rules that a tree of these files breaks, each with importer and import. */
async function broken(files: Readonly<Record<string, string>>): Promise<string[]> {
  const tree = await mkdtemp(path.join(folder, 'tree-'));
  for (const file of [CONFIG, 'tsconfig.json', 'package.json']) {
    await cp(path.join(projectRoot, file), path.join(tree, file));
  }
  await symlink(path.join(projectRoot, 'node_modules'), path.join(tree, 'node_modules'));
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(tree, file)), { recursive: true });
    await writeFile(path.join(tree, file), `${text}\nexport interface Shape { readonly a: 1 }\n`);
  }
  const program = path.join(projectRoot, 'node_modules', '.bin', 'depcruise');
  const args = ['--config', CONFIG, '--output-type', 'json', '.'];
  const output = await new Promise<string>((resolve) => {
    execFile(program, args, { cwd: tree, maxBuffer: 10_000_000 }, (_, stdout) => resolve(stdout));
  });
  const { summary } = JSON.parse(output);
  return summary.violations.map(
    ({ rule, from, to }: { rule: { name: string }; from: string; to: string }) =>
      `${rule.name}: ${from} > ${to.replace(/.*node_modules\/((@.*?\/)?.*?)\/.*/, '$1')}`,
  );
}

const type = (file: string) => `import type { Shape } from '${file}'; export type { Shape as It };`;
const value = (file: string) => `import '${file}';`;

test('accepts imports within the module boundaries', async () => {
  expect(
    await broken({
      'src/agents/agent.ts': '',
      'src/types/watchdog.ts': '',
      'activities/records.ts': value('../src/agents/agent.js'),
      'workflows/ids.ts': '',
      'workflows/watch.ts':
        value('@temporalio/workflow') +
        value('../src/types/watchdog.js') +
        type('../activities/records.js'),
      'temporal/supervisors.ts': value('../workflows/ids.js') + type('../workflows/watch.js'),
      'api/main.ts': value('../temporal/supervisors.js') + value('koa'),
      'worker/main.ts': value('../temporal/supervisors.js') + value('../activities/records.js'),
      'dev/start.ts': value('../src/agents/agent.js'),
    }),
  ).toEqual([]);
});

describe('violations of the import rules', () => {
  let found: string[];
  beforeAll(async () => {
    found = await broken({
      'src/lib/a.ts': type('./b.js'),
      'src/lib/b.ts': type('./c.js'),
      'src/lib/c.ts': type('./a.js'),
      'src/lib/high.ts': type('../money/amount.js'),
      'src/money/amount.ts': type('../services.js'),
      'src/services.ts': '',
      'src/news/feed.ts': '',
      'src/newsstand.ts': type('./news/feed.js'),
      'src/accounts.ts': type('../api/main.js') + value('koa') + type('@temporalio/client'),
      'src/agents/agent.ts': '',
      'api/main.ts': '',
      'api/koa.ts': type('../worker/main.js'),
      'worker/main.ts': type('../api/main.js') + value('../src/payment-services.js'),
      'worker/payments.ts': value('../src/payment-services.js'),
      'src/payment-services.ts': value('./wallets/open-key.js'),
      'src/money/wallets/open-key.ts': '',
      'src/money/wallets/own-wallets.ts': value('./open-key.js'),
      'activities/heartbeats.ts': type('../temporal/schedules.js'),
      'activities/records.ts': '',
      'temporal/schedules.ts': value('../workflows/watch.js'),
      'workflows/watch.ts':
        value('node:fs') +
        type('zod') +
        value('../src/agents/agent.js') +
        value('../activities/records.js'),
      'dev/start.ts': type('../worker/main.js'),
      'scripts/migrate.ts': value('../dev/start.js'),
    });
  });
  const of = (rule: string) => found.filter((each) => each.startsWith(`${rule}:`));

  test('finds import cycles, even of only types', () => {
    expect(of('no-circles')).toEqual([expect.stringContaining('src/lib/')]);
  });

  test('finds imports that go up the layers of src', () => {
    expect(found.filter((each) => each.startsWith('layer-of-')).sort()).toEqual([
      'layer-of-lib: src/lib/high.ts > src/money/amount.ts',
      'layer-of-money: src/money/amount.ts > src/services.ts',
    ]);
  });

  test('finds a group of src that is no layer', () => {
    expect(of('known-layers')).toEqual(['known-layers: src/newsstand.ts > src/news/feed.ts']);
  });

  test('finds imports across module boundaries, even of only types', () => {
    expect(found.filter((each) => each.startsWith('rooms-of-')).sort()).toEqual([
      'rooms-of-activities: activities/heartbeats.ts > temporal/schedules.ts',
      'rooms-of-api: api/koa.ts > worker/main.ts',
      'rooms-of-dev: dev/start.ts > worker/main.ts',
      'rooms-of-src: src/accounts.ts > api/main.ts',
      'rooms-of-worker: worker/main.ts > api/main.ts',
    ]);
    expect(of('product-alone')).toEqual(['product-alone: scripts/migrate.ts > dev/start.ts']);
  });

  test('finds Koa and Temporal in the domain', () => {
    expect(of('domain-without-frameworks').sort()).toEqual([
      'domain-without-frameworks: src/accounts.ts > @temporalio/client',
      'domain-without-frameworks: src/accounts.ts > koa',
    ]);
  });

  test('finds workflow imports other than types, pure rules and the SDK', () => {
    expect(of('workflows-are-deterministic').sort()).toEqual([
      'workflows-are-deterministic: workflows/watch.ts > fs',
      'workflows-are-deterministic: workflows/watch.ts > zod',
    ]);
    expect(of('workflows-know-types').sort()).toEqual([
      'workflows-know-types: workflows/watch.ts > activities/records.ts',
      'workflows-know-types: workflows/watch.ts > src/agents/agent.ts',
    ]);
  });

  test('finds imports of key access outside the signing process', () => {
    expect(of('keys-where-they-sign').sort()).toEqual([
      'keys-where-they-sign: src/money/wallets/own-wallets.ts > src/money/wallets/open-key.ts',
      'keys-where-they-sign: worker/main.ts > src/payment-services.ts',
    ]);
  });

  test('finds imports of workflow code where its messages suffice', () => {
    expect(of('messages-of-workflows')).toEqual([
      'messages-of-workflows: temporal/schedules.ts > workflows/watch.ts',
    ]);
  });
});
