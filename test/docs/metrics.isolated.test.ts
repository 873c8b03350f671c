import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { Metrics } from '../../src/metrics.js';
import { exportPools } from '../../src/platform/operators/database-metrics.js';
import { Database } from '../../src/platform/database/database.js';
import { exportCertificate, exportLedger, exportPlatform } from '../../worker/platform-metrics.js';
import { WorkerMetrics } from '../../worker/worker-metrics.js';
import { HOST_CERTIFICATE } from '../agents/hosts/certificate.js';

const NO_USE = { busy: 0, idle: 0, waiting: 0 };

test("docs/operations.md describes each of the platform's own metrics, and no other", async () => {
  const ofApi = new Metrics();
  ofApi.collectDefaults();
  exportPools(ofApi.registry, { pools: { statements: NO_USE, transactions: NO_USE } });
  const ofWorker = new WorkerMetrics(() => Promise.resolve(''));
  ofWorker.exportLimiters(hostLimiters(1));
  ofWorker.exportEgress(() => ({ status: 'open', reason: null, refuses: false }));
  exportPlatform(ofWorker.registry, new Database('postgres://nobody@127.0.0.1:1/nothing'));
  exportLedger(ofWorker.registry);
  exportCertificate(ofWorker.registry, HOST_CERTIFICATE);
  const exported = `${await ofApi.read()}\n${await ofWorker.read()}`;
  const names = [...exported.matchAll(/^# TYPE (aps_\S+)/gm)].map(([, name]) => name);

  const page = readFileSync(path.join(projectRoot, 'docs', 'operations.md'), 'utf8');
  const described = [...page.matchAll(/\baps_[a-z_]+/g)].map(([name]) =>
    name.replace(/_(bucket|count|sum)$/, ''),
  );
  expect([...new Set(described)].sort()).toEqual([...new Set(names)].sort());
});
