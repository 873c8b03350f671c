import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createStartActivities } from '../../../activities/starts.js';
import { hostLimiters } from '../../../src/agents/watchdog/host-limiters.js';
import { StartProgress } from '../../../src/agents/watchdog/start-progress.js';
import {
  type AgentContainerSpec,
  containerName,
} from '../../../src/docker/containers/container-spec.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { runInContainer } from '../../support/run-in-container.js';
import { testDocker } from '../../support/docker.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterAll(() => fixture.close());

const FILE = 'notes/kept.txt';

/** Creates an agent whose container exists and waits for its turn to start. */
async function made(): Promise<AgentContainerSpec> {
  const spec = await fixture.spec({ image, files: { [FILE]: 'kept' } });
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  await containers.ensure(spec);
  return spec;
}

/**
 * Runs the start activity as the given attempt.
 *
 * @returns the contents of the agent's file.
 */
async function start(spec: AgentContainerSpec, attempt = 1): Promise<string> {
  const dependencies = {
    docker: host,
    memorySizes: { requireRoom: () => Promise.resolve() },
    specs: {
      specOf: () => Promise.resolve(spec),
      skillsOf: () => Promise.resolve({}),
      gatewayOf: () => Promise.resolve({ port: spec.port, gatewayToken: '', hasChannels: false }),
      recordContainer: () => Promise.resolve(),
    },
    limiters: hostLimiters(1),
    progress: new StartProgress(containers),
  } as unknown as Parameters<typeof createStartActivities>[0]; // only the parts that a start uses
  const { startContainer } = createStartActivities(dependencies);
  const { agentId, userId } = spec;
  await new MockActivityEnvironment({ attempt }).run(() =>
    startContainer({ agentId, userId, host: 'local' }),
  );
  return inAgent(agentId, `process.stdout.write(fs.readFileSync('/home/node/${FILE}', 'utf8'))`);
}

const inAgent = (agentId: string, script: string) =>
  runInContainer(docker, containerName(agentId), `const fs = require('fs'); ${script}`);

test('a start recreates a container that was removed before its turn', async () => {
  const spec = await made();
  await docker.getContainer(containerName(spec.agentId)).remove();
  expect(await start(spec)).toBe('kept');
});

test("a start recreates a network that was removed before the container's turn", async () => {
  const spec = await made();
  await docker.getNetwork(containerName(spec.agentId)).remove();
  expect(await start(spec)).toBe('kept');
});

test('a retried start writes files and secrets into a container that an earlier attempt created', async () => {
  const spec = await made();
  const again = { ...spec, secrets: { KEY: 'second' } };
  expect(await start(again, 2)).toBe('kept');
  const secrets = `process.stdout.write(fs.readFileSync('/home/node/.openclaw/.env', 'utf8'))`;
  expect(await inAgent(spec.agentId, secrets)).toContain("KEY='second'");
});
