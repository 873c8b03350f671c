import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { LABEL } from '../../src/docker/containers/container-spec.js';

/** The baseline for the detection of a death: dockerode's bare event stream. */
export class DeathListener {
  readonly #received = new Map<string, number[]>();

  readonly #events: Readable;

  private constructor(events: Readable) {
    this.#events = events;

    let rest = '';
    events.on('data', (chunk: Buffer) => {
      const at = Date.now();
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter(Boolean)) {
        const event: { Actor: { Attributes: Record<string, string> } } = JSON.parse(line);
        const agentId = event.Actor.Attributes[LABEL.agent] ?? '';
        this.#received.set(agentId, [...(this.#received.get(agentId) ?? []), at]);
      }
    });
  }

  static async on(docker: Docker): Promise<DeathListener> {
    const events = await docker.getEvents({
      filters: { type: ['container'], event: ['die'], label: [LABEL.agent] },
    });
    return new DeathListener(events as Readable); // an HTTP response
  }

  /** Returns the milliseconds from a moment to the agent's next death; NaN if none was reported. */
  after(agentId: string, moment: number): number {
    const at = this.#received.get(agentId)?.find((each) => each >= moment);
    return at === undefined ? Number.NaN : at - moment;
  }

  end(): void {
    this.#events.destroy();
  }
}
