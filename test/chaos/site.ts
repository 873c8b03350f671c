import type { Client } from '@temporalio/client';
import type Docker from 'dockerode';
import type { Database } from '../../src/platform/database/database.js';
import type { CarefulClient } from './careful-client.js';

/** A Docker host that agents are on. */
export interface SiteHost {
  readonly docker: Docker;
  /** Its engine ends as in a power cut. */
  killEngine(): Promise<void>;
  /** @returns once it answers. */
  startEngine(): Promise<void>;
  /** Whether the agent with this port answers, in this moment. */
  isAnswering(port: number): Promise<boolean>;
}

/** The platform that is hurt, and what looks at it. */
export interface Site {
  /** By their names, as in `AGENT_HOST`. */
  readonly hosts: Readonly<Record<string, SiteHost>>;
  readonly database: Database;
  readonly temporal: Client;
  readonly api: CarefulClient;
  /** Tags of the agents' image: another version that works, and one that does not come up. */
  readonly versions: { readonly good: string; readonly broken: string };
  /** The process of a part, such as `api`; undefined while it is dead. */
  livingPidOf(part: string): Promise<number | undefined>;
}

/** The host that an agent is on; undefined where there is no such agent yet. */
export async function hostOf(
  { database, hosts }: Pick<Site, 'database' | 'hosts'>,
  agentId: string,
): Promise<SiteHost | undefined> {
  const agent = await database.asPlatform().transaction((db) => db.Agent.findByPk(agentId));
  return agent ? hosts[agent.host] : undefined;
}

const PROBE_TIMEOUT_MS = 2_000;

/** Asks the agent with this port of the network that this process is in. */
export async function answersOn(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, {
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.ok === true;
}
