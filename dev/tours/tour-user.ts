import { randomBytes } from 'node:crypto';
import { getAddress } from 'viem';
import { signMessage } from 'viem/accounts';
import { createSiweMessage } from 'viem/siwe';
import * as z from 'zod';
import type { LocalChain } from '../chain/local-chain.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import type { Answer, Terminal, TourRequest } from './terminal.js';

/** The platform's addresses and keys for a tour. */
export interface PlatformFacts {
  readonly webUrl: string;
  readonly backendUrl: string;
  readonly internalApiKey: string;
  /** The file from which a shell reads the key, if the platform stays. */
  readonly secretsFile?: string;
  /** User agent of a browser, which registration requires in production. */
  readonly userAgent?: string;
}

const challenge = z.object({ nonce: z.string() });
const account = z.object({ user: z.object({ id: z.string() }) });
const provisioned = z.object({ agent: z.object({ id: z.string() }) });
const agentState = z.object({
  agent: z.object({ status: z.string(), statusReason: z.string().nullish() }),
});

/** A new user of the platform, who creates agents. */
export class TourUser {
  readonly #facts: PlatformFacts;
  readonly #terminal: Terminal;
  readonly #variable: string;
  #cookie = '';

  /** @param variable the shell variable shown in place of the session's cookie. */
  constructor(facts: PlatformFacts, terminal: Terminal, variable = 'COOKIE') {
    this.#facts = facts;
    this.#terminal = terminal;
    this.#variable = variable;
    terminal.hide('INTERNAL_API_KEY', facts.internalApiKey);
  }

  /** Prints how a shell sends the shown requests again. */
  introduce(): void {
    const { secretsFile } = this.#facts;
    if (secretsFile === undefined) return;
    say('To send the shown requests again from a shell, set');
    say(`export INTERNAL_API_KEY=$(node -p "require('${secretsFile}').internalApiKey")`);
  }

  /** Registers, signs in and gets a plan for three agents. @returns the user's id. */
  async signIn(): Promise<string> {
    const terminal = this.#terminal;
    const email = `ada-${randomBytes(4).toString('hex')}@example.com`;
    const password = 'correct horse battery';
    await terminal.ask(this.web('POST', '/api/register', { name: 'Ada', email, password }));
    this.#keepSession(await terminal.ask(this.web('POST', '/api/auth/login', { email, password })));
    const { body } = await terminal.ask(this.web('GET', '/api/auth/session'));
    const { id } = account.parse(body).user;
    await terminal.ask(
      this.backend('POST', '/api/subscriptions/deploy', { userId: id, plan: 'solo' }),
    );
    return id;
  }

  /** Signs in with an account of the chain, whose wallet the user then has. */
  async signInByWallet(
    { address: signer, privateKey }: LocalChain['accounts'][number],
    chainId: number,
  ): Promise<void> {
    const { body } = await this.#terminal.ask(this.web('GET', '/api/auth/nonce'));
    const { nonce } = challenge.parse(body);
    const { host, origin } = new URL(this.#facts.webUrl);
    const address = getAddress(signer);
    const message = createSiweMessage({
      domain: host,
      uri: origin,
      version: '1',
      address,
      chainId,
      nonce,
      issuedAt: new Date(),
    });
    const signature = await signMessage({ message, privateKey });
    this.#keepSession(
      await this.#terminal.ask(
        this.web('POST', '/api/wallet-auth', { address, message, signature }),
      ),
    );
  }

  /** Creates an agent and waits until the agent runs. @returns the agent's id. @throws StartFailure */
  async provision(name: string): Promise<string> {
    const created = await this.#terminal.ask(this.web('POST', '/api/agents/provision', { name }));
    const { id } = provisioned.parse(created.body).agent;
    await this.untilRunning(id);
    return id;
  }

  /** Waits until the agent runs. @throws StartFailure if the agent does not. */
  async untilRunning(agentId: string): Promise<void> {
    const { body } = await this.#terminal.until(
      this.web('GET', `/api/agents/${agentId}`),
      (found) => ['running', 'error'].includes(agentState.parse(found).agent.status),
    );
    const { status, statusReason } = agentState.parse(body).agent;
    if (status === 'running') return;
    throw new StartFailure(`The tour ends here: the agent does not run. ${statusReason ?? ''}`);
  }

  async remove(...agentIds: readonly string[]): Promise<void> {
    for (const id of agentIds) await this.#terminal.ask(this.web('DELETE', `/api/agents/${id}`));
  }

  /** Returns a request to the web API as this user. */
  web(method: TourRequest['method'], path: string, body?: unknown): TourRequest {
    const { userAgent } = this.#facts;
    const headers = {
      ...(this.#cookie !== '' && { cookie: this.#cookie }),
      ...(userAgent !== undefined && { 'user-agent': userAgent }),
    };
    return { method, url: `${this.#facts.webUrl}${path}`, headers, body };
  }

  /** Returns a request to the backend as the operator. */
  backend(method: TourRequest['method'], path: string, body?: unknown): TourRequest {
    const { backendUrl, internalApiKey } = this.#facts;
    const headers = { authorization: `Bearer ${internalApiKey}` };
    return { method, url: `${backendUrl}${path}`, headers, body };
  }

  #keepSession({ headers }: Answer): void {
    this.#cookie = [headers['set-cookie'] ?? []].flat()[0]?.split(';')[0] ?? '';
    say(`\n${this.#variable}='${this.#cookie}'`);
    this.#terminal.hide(this.#variable, this.#cookie);
  }
}
