import type { Client } from '@temporalio/client';
import type Docker from 'dockerode';
import type { Database } from '../../src/platform/database/database.js';
import type { CarefulClient } from './careful-client.js';

/** A Docker host with agents. */
export interface SiteHost {
  readonly docker: Docker;
  /** Kills the host's engine as a power cut would. */
  killEngine(): Promise<void>;
  /** @returns once the engine answers. */
  startEngine(): Promise<void>;
  /** Reports whether the agent on this port answers now. */
  isAnswering(port: number): Promise<boolean>;
}

/** The platform under test and the clients that check it. */
export interface Site {
  /** Hosts by name, as in `AGENT_HOST`. */
  readonly hosts: Readonly<Record<string, SiteHost>>;
  readonly database: Database;
  readonly temporal: Client;
  readonly api: CarefulClient;
  /** Tags of the agent image: another version that works, and one that does not start. */
  readonly versions: { readonly good: string; readonly broken: string };
  /** Returns the process id of a part, such as `api`; undefined while it is dead. */
  livingPidOf(part: string): Promise<number | undefined>;
}

/** Returns the host of an agent; undefined while the agent does not exist. */
export async function hostOf(
  { database, hosts }: Pick<Site, 'database' | 'hosts'>,
  agentId: string,
): Promise<SiteHost | undefined> {
  const agent = await database.asPlatform().transaction((db) => db.Agent.findByPk(agentId));
  return agent ? hosts[agent.host] : undefined;
}

const PROBE_TIMEOUT_MS = 2_000;

/** Probes the agent on this port in this process's network. */
export async function answersOn(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, {
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.ok === true;
}
