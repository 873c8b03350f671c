import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { AtEnd } from '../../bench/support/cleanups.js';
import { freeSubnetPool } from '../../bench/support/engine.js';
import { makeFolder } from '../../bench/support/folder.js';
import { OwnEngine } from '../../bench/support/own-engine.js';
import { BenchPlatform } from '../../bench/support/platform.js';
import { Database } from '../../src/platform/database/database.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { varyTestImage } from '../agent-image/vary-test-image.js';
import { CarefulClient } from './careful-client.js';
import { removeContainers } from './remains.js';
import { answersOn, type Site } from './site.js';

/** Ports of agents. */
export const PORTS = { first: 22_100, last: 22_399 };

/** Settings different from the product's, so that a round takes seconds. */
export const HASTE = { WATCHDOG_CHECK_INTERVAL: '5s' };

/**
 * Starts a platform with a Docker engine of its own, for agents of the test image.
 *
 * @param env more variables of the platform.
 */
export async function openAgentsSite(
  atEnd: AtEnd,
  env: NodeJS.ProcessEnv = {},
): Promise<{ readonly site: Site; readonly platform: BenchPlatform }> {
  const folder = await makeFolder(atEnd);
  const engine = new OwnEngine(folder);
  atEnd(() => engine.stop());
  await engine.start();
  const { docker } = engine;
  const image = await ensureTestImage(docker);
  const versions = {
    good: await varyTestImage(docker, image, 'next', ['LABEL chaos=next']),
    broken: await varyTestImage(docker, image, 'broken', ['ENV EXIT_AT_START=3']),
  };
  const platform = await BenchPlatform.start(path.join(folder, 'platform'), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: image,
    AGENT_VERSIONS: Object.values(versions).join(','),
    AGENT_SUBNET_POOL: await freeSubnetPool(docker),
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: `${PORTS.first}-${PORTS.last}`,
    AGENT_HOST_CAPACITY: '100',
    AGENT_AI_HOST: '127.0.0.1', // these agents make no AI requests
    ...HASTE,
    ...env,
  });
  atEnd(() => removeContainers(docker));
  atEnd(() => platform.stop());
  const database = new Database(platform.databaseUrl, { maxConnections: 4 });
  atEnd(() => database.close());
  const connection = Connection.lazy({ address: platform.temporalAddress });
  atEnd(() => connection.close());
  const site: Site = {
    hosts: {
      local: {
        docker,
        killEngine: () => engine.kill(),
        startEngine: async () => void (await engine.start()),
        isAnswering: answersOn,
      },
    },
    livingPidOf: (part) => platform.livingPidOf(part),
    database,
    temporal: new Client({ connection }),
    api: new CarefulClient(platform.backendUrl, platform.internalApiKey),
    versions,
  };
  return { site, platform };
}
