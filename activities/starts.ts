import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { waitWhileStarting } from '../src/agents/watchdog/await-ready.js';
import { runningForMs } from '../src/agents/watchdog/start-progress.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  PortTakenError,
} from '../src/docker/containers/container-errors.js';
import { createContainer, type ContainerActivityDependencies } from './containers.js';
import { dockerCalls } from './docker-activity.js';

const RECREATED_AFTER = [ContainerMissingError, DockerRefusedError, PortTakenError];

/**
 * A Docker daemon killed during a container's start may never start it again, because its runtime still has
 * the first start. A new container also helps when the container or its network was removed.
 */
const isToBeReplaced = (error: unknown): boolean =>
  error instanceof ContainerMissingError ||
  (error instanceof DockerRefusedError && (error.statusCode >= 500 || error.statusCode === 404));

/**
 * Creates the activities that start agents, as many concurrently as the host can bear. A start's slot is free
 * again once the agent is up or no longer needs the slot; `awaitReady` decides if the agent is up.
 */
export function createStartActivities(dependencies: ContainerActivityDependencies) {
  const { docker, memorySizes, specs, limiters, progress } = dependencies;

  return dockerCalls(limiters.starts, {
    /** Starts the container, and returns the milliseconds for which it has run; 0 if it does not run. */
    async startContainer(agent: AgentRef): Promise<number> {
      await memorySizes.requireRoom(agent);
      // A container that an earlier attempt began to create may lack its files.
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
    /** Starts the existing container. Returns false if some part must be created first. */
    async startExisting(agent: AgentRef): Promise<boolean> {
      await docker.volumes.require(await specs.memoryOf(agent));
      await memorySizes.requireRoom(agent);
      // A container that never ran may lack its files: its worker may have died before it copied them in.
      const container = await docker.containers.inspect(agent.agentId);
      if (container?.status === 'created') return false;
      // The agent may have removed files of its skills.
      const skills = await specs.skillsOf(agent);
      if (Object.keys(skills).length > 0) await createContainer(dependencies, agent, skills);
      try {
        await docker.containers.start(agent.agentId);
      } catch (error) {
        if (RECREATED_AFTER.some((type) => error instanceof type)) return false;
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
    await waitWhileStarting(docker.containers, progress, agent.agentId, gateway);
  }
}

export type StartActivities = ReturnType<typeof createStartActivities>;
