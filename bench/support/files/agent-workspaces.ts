import { randomUUID } from 'node:crypto';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import {
  containerName,
  spareNames,
  STATE_DIRECTORY,
} from '../../../src/docker/containers/container-spec.js';
import { WORKSPACE_FOLDERS } from '../../../src/docker/containers/openclaw-config.js';
import { AgentFiles } from '../../../src/agents/hosts/agent-files.js';
import type { HostAccess } from '../../../src/agents/hosts/host-access.js';
import { builtHelper } from '../../../src/workspace-helper.js';
import { ensureTestImage } from '../../../test/agent-image/ensure-test-image.js';
import { runInContainer } from '../../../test/support/run-in-container.js';
import type { AtEnd } from '../cleanups.js';
import { obtainEngine } from '../engine.js';
import {
  commitScript,
  fillScript,
  statusScript,
  type BenchWorkspaces,
  type Sizes,
} from './bench-workspaces.js';

const WORKSPACE = [STATE_DIRECTORY, ...WORKSPACE_FOLDERS].join('/');

/** Creates workspaces of stopped agents, each in a volume of its own that a helper opens. */
export async function agentWorkspaces(
  folder: string,
  sizes: Sizes,
  atEnd: AtEnd,
): Promise<BenchWorkspaces> {
  const engine = await obtainEngine(folder, atEnd);
  const installation = `bench-${randomUUID()}`;
  const host = new DockerHost({ dockerHost: engine.host, installation });
  const program = await builtHelper();
  const image = await ensureTestImage(engine.docker);

  async function newWorkspace() {
    const agent: AgentRef = { agentId: randomUUID(), userId: installation, host: '' };
    const volume = containerName(agent.agentId);
    await host.volumes.ensure(agent, 'bench');
    atEnd(() => engine.docker.getVolume(volume).remove());
    const browse: HostAccess['browse'] = async function* (_, call, signal) {
      const waits = { signal, still: () => Promise.resolve() };
      yield await host.workspaces.call(program, { ...agent, image, volume }, call, waits);
    };
    const files = new AgentFiles({ accessTo: () => Promise.resolve({ browse }) }, agent);
    const run = async (script: string) => {
      await files.tree(1); // starts the helper and creates the folder
      return runInContainer(engine.docker, spareNames(agent.agentId).files, script);
    };
    return { files, run };
  }

  const [listed, tracked] = await Promise.all([newWorkspace(), newWorkspace()]);
  atEnd(() => host.workspaces.close());
  await listed.run(fillScript(WORKSPACE, sizes.listed));
  await tracked.run(fillScript(WORKSPACE, sizes.tracked) + commitScript(WORKSPACE));
  return {
    listed: listed.files,
    tracked: tracked.files,
    plainStatus: async () => Number(await tracked.run(statusScript(WORKSPACE))),
    restart: () => host.workspaces.close(),
  };
}
