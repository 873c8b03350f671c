import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { whileStarting } from '../src/agents/watchdog/await-ready.js';
import { runningForMs } from '../src/agents/watchdog/start-progress.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  PortTakenError,
} from '../src/docker/containers/container-errors.js';
import { createContainer, type ContainerActivityDependencies } from './containers.js';
import { dockerCalls } from './docker-activity.js';

/** What keeps a container from being started as it is, and not from being made again. */
const MAKE_ANEW = [ContainerMissingError, DockerRefusedError, PortTakenError];

/**
 * A Docker daemon that was killed while it started a container may never start that one again,
 * because its runtime still has the first start; a new container in its place does start. So it does
 * where the container or its network was taken away, by hand or by a worker that died before it had made
 * another.
 */
const isToBeReplaced = (error: unknown): boolean =>
  error instanceof ContainerMissingError ||
  (error instanceof DockerRefusedError && (error.statusCode >= 500 || error.statusCode === 404));

/**
 * What starts an agent, each in its turn, so that no more agents are starting at a time than their
 * host can bear. A turn ends when the agent is up, or has no more use for it; whether it came up is
 * for `awaitReady` to say.
 */
export function createStartActivities(dependencies: ContainerActivityDependencies) {
  const { docker, memorySizes, specs, turns, progress } = dependencies;

  return dockerCalls(turns.starts, {
    /** @returns for how many milliseconds the container runs by now; 0 when it does not. */
    async startContainer(agent: AgentRef): Promise<number> {
      await memorySizes.requireRoom(agent);
      // One that an attempt before this had begun to make may lack its files.
      if (Context.current().info.attempt > 1) await finishMaking(agent);
      try {
        await docker.containers.start(agent.agentId);
      } catch (error) {
        if (!isToBeReplaced(error)) throw error;
        await docker.containers.remove(agent.agentId);
        await docker.networks.ensure(await specs.specOf(agent));
        await createContainer(dependencies, agent);
        await docker.containers.start(agent.agentId);
      }
      await whileUsingTheHost(agent);
      const container = await docker.containers.inspect(agent.agentId);
      return container?.status === 'running' ? runningForMs(container) : 0;
    },
    /** Starts the container that is there. False when something of it has to be made first. */
    async startExisting(agent: AgentRef): Promise<boolean> {
      await docker.volumes.require(await specs.memoryOf(agent));
      await memorySizes.requireRoom(agent);
      // One that has never run may lack its files: whoever made it may have died before they were put.
      const container = await docker.containers.inspect(agent.agentId);
      if (container?.status === 'created') return false;
      try {
        await docker.containers.start(agent.agentId);
      } catch (error) {
        if (MAKE_ANEW.some((type) => error instanceof type)) return false;
        throw error;
      }
      await whileUsingTheHost(agent);
      return true;
    },
  });

  async function finishMaking(agent: AgentRef): Promise<void> {
    const container = await docker.containers.inspect(agent.agentId);
    if (container?.status === 'created') await createContainer(dependencies, agent);
  }

  async function whileUsingTheHost(agent: AgentRef): Promise<void> {
    const { cancellationSignal: signal } = Context.current();
    const gateway = { ...(await specs.gatewayOf(agent)), signal };
    await whileStarting(docker.containers, progress, agent.agentId, gateway);
  }
}

export type StartActivities = ReturnType<typeof createStartActivities>;
