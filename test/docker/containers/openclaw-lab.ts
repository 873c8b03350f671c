import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ensureAgentImage } from '../../../dev/agent-image/build-openclaw.js';
import { readSettings } from '../../../dev/settings.js';
import { AGENT_RUNTIME_VERSION } from '../../../src/agents/lifecycle/settings.js';
import type { AgentContainerSpec } from '../../../src/docker/containers/container-spec.js';
import { gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import {
  CONFIG_FILE,
  openClawConfig,
  openClawEnvironment,
  openClawSecrets,
} from '../../../src/docker/containers/openclaw-config.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { testDocker } from '../../support/docker.js';
import { streamCompletion } from '../../support/provider-stub.js';
import { until } from '../../support/until.js';

/** Milliseconds until OpenClaw is ready: 7 s by itself, and several times as long beside other tests. */
export const READY_MS = 120_000;

/** Tokens of the agent that `start` runs. */
export const TOKENS = {
  gatewayToken: 'gateway-token-of-the-test',
  aiToken: 'ai-token-of-the-test',
};

/** The user's message in `ask`. */
export const SAID = 'Say hello to the platform.';

/** Real OpenClaw in the product's containers, with an AI provider that always streams the same answer. */
export class OpenClawLab {
  readonly fixture = testDocker();
  /** Requests to the AI provider. */
  readonly asked: { authorization: string | undefined; body: string }[] = [];
  readonly #provider: Server;
  #image = '';

  private constructor() {
    this.#provider = createServer((request, response) => {
      this.#complete(request, response).catch(() => response.destroy());
    });
  }

  /** Builds the agents' image, unless the engine has the image, and starts the provider. */
  static async open(): Promise<OpenClawLab> {
    const lab = new OpenClawLab();
    const { docker, host } = lab.fixture;
    const { cacheDir } = readSettings(process.env).process;
    const build = { docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log };
    lab.#image = process.env.AGENT_RUNTIME_IMAGE ?? (await ensureAgentImage(build));
    lab.#provider.listen(0, await host.bridgeAddress());
    await once(lab.#provider, 'listening');
    return lab;
  }

  /**
   * Starts an agent with these secrets beside its tokens, settings of its user, and texts of skills by their
   * names.
   */
  async start(
    secrets: Readonly<Record<string, string>> = {},
    settings: JsonObject = {},
    skills: Readonly<Record<string, string>> = {},
  ): Promise<AgentContainerSpec> {
    const { port } = this.#provider.address() as AddressInfo;
    const config = openClawConfig({
      aiBaseUrl: `http://host.docker.internal:${port}/v1`,
      model: 'auto',
      variables: new Set(Object.keys(secrets)),
      userConfig: {
        ...settings,
        gateway: { auth: { mode: 'none' } },
        models: { mode: 'merge' },
        skills: {
          entries: Object.fromEntries(Object.keys(skills).map((name) => [name, { enabled: true }])),
        },
      },
    });
    const { host } = this.fixture;
    const spec = await this.fixture.spec({
      image: this.#image,
      env: openClawEnvironment(),
      secrets: { ...secrets, ...openClawSecrets(TOKENS) },
      files: { [CONFIG_FILE]: config },
      skills,
    });
    await host.networks.ensure(spec);
    await host.volumes.ensure(spec, 'test');
    await this.comeUp(spec);
    return spec;
  }

  /** Returns the specification of another agent with the same image. */
  another(): Promise<AgentContainerSpec> {
    return this.fixture.spec({ image: this.#image });
  }

  /** Starts a container and waits until its gateway is ready. */
  async comeUp(spec: AgentContainerSpec): Promise<void> {
    const { containers } = this.fixture;
    await containers.ensure(spec);
    await containers.start(spec.agentId);
    try {
      await until(
        async () => (await gatewayReady(spec.port, { timeoutMs: 1_000, hasChannels: true })).ready,
        READY_MS,
      );
    } catch (error) {
      for await (const { line } of containers.logs(spec.agentId, { tail: 40 })) console.error(line);
      throw error;
    }
  }

  /** Sends a chat message to an agent's gateway. */
  ask(port: number, token: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({
        model: 'openclaw/default',
        user: 'conversation-1',
        messages: [{ role: 'user', content: SAID }],
      }),
      signal: AbortSignal.timeout(120_000),
    });
  }

  async close(): Promise<void> {
    await this.fixture.close();
    this.#provider.closeAllConnections();
    this.#provider.close();
  }

  async #complete(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked.push({
      authorization: request.headers.authorization,
      body: await text(request),
    });
    streamCompletion(response, [
      { role: 'assistant', content: 'Hello from ' },
      { content: 'the stub.' },
    ]);
  }
}
