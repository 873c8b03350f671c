import { cpus, freemem, totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { cachedFor } from '../../lib/cached-for.js';

/** Percent above which (not at which) the machine is degraded, and unhealthy (spec 8). */
const DEGRADED_ABOVE = 70;
const UNHEALTHY_ABOVE = 85;

/** Milliseconds over which CPU usage is sampled, and for which the result is cached. */
const SAMPLE_MS = 100;

const KEEP_MS = 1_000;

export interface HostHealth {
  readonly health: 'healthy' | 'degraded' | 'unhealthy';
  /** Percent across all cores. */
  readonly cpu: { readonly usage: number; readonly cores: number };
  /** Bytes, except `usage`: percent. */
  readonly memory: {
    readonly usage: number;
    readonly total: number;
    readonly used: number;
    readonly free: number;
  };
  /** Seconds since this process started. */
  readonly uptime: number;
}

/** Measures this machine at most once a second; undefined if the measurement fails. */
export const hostHealth = cachedFor(KEEP_MS, measure);

/** Returns the health for the higher of two usages in percent. */
export function healthOf(cpuUsage: number, memoryUsage: number): HostHealth['health'] {
  const busiest = Math.max(cpuUsage, memoryUsage);
  if (busiest > UNHEALTHY_ABOVE) return 'unhealthy';
  return busiest > DEGRADED_ABOVE ? 'degraded' : 'healthy';
}

async function measure(): Promise<HostHealth | undefined> {
  const before = cpuTimes();
  await delay(SAMPLE_MS);
  const after = cpuTimes();
  const total = totalmem();
  const free = freemem();
  const elapsed = after.total - before.total;
  const cpuUsage = percent(elapsed - (after.idle - before.idle), elapsed);
  const memoryUsage = percent(total - free, total);
  // Some containers hide these figures: zero cores or zero bytes are not a measurement.
  if (after.cores === 0 || total === 0) return undefined;
  return {
    health: healthOf(cpuUsage, memoryUsage),
    cpu: { usage: cpuUsage, cores: after.cores },
    memory: { usage: memoryUsage, total, used: total - free, free },
    uptime: process.uptime(),
  };
}

function cpuTimes() {
  const all = cpus();
  const idle = all.reduce((sum, { times }) => sum + times.idle, 0);
  const total = all.reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.idle + times.irq,
    0,
  );
  return { cores: all.length, idle, total };
}

function percent(part: number, whole: number): number {
  if (whole <= 0) return 0;
  return Math.round(Math.min(Math.max((part / whole) * 100, 0), 100) * 10) / 10;
}
