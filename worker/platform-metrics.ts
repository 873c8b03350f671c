import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import { HOST_STATUSES, statusOf } from '../src/agents/hosts/host-status.js';
import { hostLoads } from '../src/agents/hosts/hosts.js';
import { cachedFor } from '../src/lib/cached-for.js';
import type { Database } from '../src/platform/database/database.js';

/** Milliseconds for which figures from the database are cached. */
const KEEP_MS = 10_000;

/** Milliseconds after which a check of the ledger is outdated: a later one may have run in another worker. */
const LEDGER_MS = 2 * 60 * 60_000;

/** Operations that have not ended, in the order of these two states. */
const OPEN = ['requested', 'running'] as const;

/** Seconds since the request of the oldest operation that has not begun, and since the begin of the oldest other. */
const AGES = `
  SELECT coalesce(extract(epoch FROM now() - min(requested_at) FILTER (WHERE status = 'requested')), 0)::float8
           AS requested,
         coalesce(extract(epoch FROM now() - min(coalesce(admitted_at, requested_at))
           FILTER (WHERE status = 'running')), 0)::float8 AS running
    FROM operations WHERE finished_at IS NULL`;

type Ages = Readonly<Record<(typeof OPEN)[number], number>>;

/**
 * Exports figures of the whole platform, which each worker with the role `workflows` reads from the database.
 * The figures are missing while the database is unavailable.
 */
export function exportPlatform(registry: Registry, database: Pick<Database, 'asPlatform'>): void {
  const registers = [registry];
  const readAges = cachedFor(KEEP_MS, () => database.asPlatform().query<Ages>(AGES));
  const ages: Gauge<'state'> = new Gauge({
    name: 'aps_operation_oldest_seconds',
    help: 'Age of the oldest operation that has not ended',
    labelNames: ['state'],
    registers,
    async collect() {
      const [found] = await readAges().catch(() => []);
      if (!found) return ages.reset();
      for (const state of OPEN) ages.set({ state }, found[state]);
    },
  });
  const readHosts = cachedFor(KEEP_MS, () => hostLoads(database.asPlatform()));
  const hosts: Gauge<'status'> = new Gauge({
    name: 'aps_hosts',
    help: 'Hosts by status',
    labelNames: ['status'],
    registers,
    async collect() {
      const loads = await readHosts().catch(() => undefined);
      if (!loads) return hosts.reset();
      const statuses = loads.map(statusOf);
      for (const status of HOST_STATUSES) {
        hosts.set({ status }, statuses.filter((each) => each === status).length);
      }
    },
  });
}

/** Exports the result of the last check of the ledger by this worker. @returns a function that records one. */
export function exportLedger(
  registry: Registry,
  now: () => number = Date.now,
): (differences: number) => void {
  const registers = [registry];
  let last: { readonly at: number; readonly differences: number } | undefined;
  const recent = () => (last !== undefined && now() - last.at < LEDGER_MS ? last : undefined);
  const differences: Gauge = new Gauge({
    name: 'aps_ledger_differences',
    help: 'Differences that the last check of the ledger found, at most two hours ago',
    registers,
    collect() {
      const found = recent();
      if (found) differences.set(found.differences);
      else differences.remove();
    },
  });
  const checked: Gauge = new Gauge({
    name: 'aps_ledger_checked_timestamp_seconds',
    help: 'Time of the last check of the ledger',
    registers,
    collect() {
      if (last) checked.set(last.at / 1_000);
      else checked.remove();
    },
  });
  return (found) => (last = { at: now(), differences: found });
}

/** Exports the end of the certificate (PEM) by which a worker serves its host. */
export function exportCertificate(registry: Registry, certificate: string): void {
  new Gauge({
    name: 'aps_host_certificate_end_timestamp_seconds',
    help: "End of the validity of this host's certificate",
    registers: [registry],
  }).set(Date.parse(new X509Certificate(certificate).validTo) / 1_000);
}
