import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { LABEL } from '../../src/docker/containers/container-spec.js';

/** Follows Docker's events and records agents that ever had two containers at the same time. */
export class ContainerWatch {
  /** Ids of agents that had two containers at the same time. */
  readonly doubled: string[] = [];
  readonly #containers = new Map<string, Set<string>>();

  readonly #events: Readable;

  private constructor(events: Readable) {
    this.#events = events;

    let rest = '';
    events.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter(Boolean)) this.#see(JSON.parse(line));
    });
  }

  static async begin(docker: Docker, installation: string): Promise<ContainerWatch> {
    const events = await docker.getEvents({
      filters: {
        type: ['container'],
        event: ['create', 'destroy'],
        label: [LABEL.agent, `${LABEL.installation}=${installation}`],
      },
    });
    return new ContainerWatch(events as Readable); // an HTTP response
  }

  end(): void {
    this.#events.destroy();
  }

  #see(event: { Action: string; Actor: { ID: string; Attributes: Record<string, string> } }): void {
    const agent = event.Actor.Attributes[LABEL.agent] ?? '';
    const containers = this.#containers.get(agent) ?? new Set();
    this.#containers.set(agent, containers);
    if (event.Action === 'create') containers.add(event.Actor.ID);
    else containers.delete(event.Actor.ID);
    if (containers.size > 1) this.doubled.push(agent);
  }
}
