import { Gauge, type Registry } from 'prom-client';
import type { Database } from '../database/database.js';

const POOLS = ['statements', 'transactions'] as const;

/** Exports the use of a process's connections to PostgreSQL. */
export function exportPools(registry: Registry, database: Pick<Database, 'pools'>): void {
  const registers = [registry];
  const connections: Gauge<'pool' | 'state'> = new Gauge({
    name: 'aps_database_connections',
    help: 'Connections to PostgreSQL by pool',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      const { pools } = database;
      for (const pool of POOLS) {
        connections.set({ pool, state: 'busy' }, pools[pool].busy);
        connections.set({ pool, state: 'idle' }, pools[pool].idle);
      }
    },
  });
  const waiting: Gauge<'pool'> = new Gauge({
    name: 'aps_database_waiting',
    help: 'Callers that wait for a connection to PostgreSQL',
    labelNames: ['pool'],
    registers,
    collect() {
      const { pools } = database;
      for (const pool of POOLS) waiting.set({ pool }, pools[pool].waiting);
    },
  });
}
