import * as z from 'zod';
import { say } from '../report.js';
import { Terminal } from './terminal.js';
import { TourUser, type PlatformFacts } from './tour-user.js';

const NO_PROVIDER = 503;

const opened = z.object({ url: z.string() });

/** A new user, whose agent is created, answers, writes a file, is stopped, started and removed. */
export class AgentTour {
  readonly #terminal = new Terminal();
  readonly #user: TourUser;

  readonly #visit: ((url: string) => Promise<void>) | undefined;

  /** @param visit opens the address of the Control UI, as a browser would. */
  constructor(facts: PlatformFacts, visit?: (url: string) => Promise<void>) {
    this.#user = new TourUser(facts, this.#terminal);
    this.#visit = visit;
  }

  /** Runs the tour; each tour of an installation is another person's. @throws StartFailure */
  async go(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    user.introduce();
    terminal.heading('Register, sign in (session in $COOKIE) and get a plan');
    await user.signIn();

    terminal.heading('Create an agent, and wait until the agent runs');
    const agentId = await user.provision('my-agent');

    terminal.heading('Open its Control UI: the address signs a browser in, within a minute');
    const { body } = await terminal.ask(user.web('POST', `/api/agents/${agentId}/open`));
    await this.#visit?.(opened.parse(body).url);

    terminal.heading('Write a file in its workspace');
    const path = 'notes/today.md';
    const write = (content: string) =>
      terminal.ask(user.web('POST', '/api/browse/write', { agentId, path, content }));
    await write('hello');

    terminal.heading('Ask the agent');
    const message = `What do you read in ${path}?`;
    const answer = await terminal.askUnless(
      NO_PROVIDER,
      user.web('POST', '/api/chat', { agentId, message }),
    );
    if (answer === undefined) {
      say('No AI provider is set up, so the tour skips the question and git, which begins with');
      say('the first answer. Set a provider as the README shows, and run the tour again.');
    } else {
      await this.#showGit(agentId, write);
    }

    terminal.heading('Read its log');
    await terminal.ask(user.backend('GET', `/api/logs/${agentId}/history?limit=5`));

    terminal.heading('Stop it, start it, and list its operations');
    await terminal.ask(user.web('POST', `/api/agents/${agentId}/stop?wait=60`));
    await terminal.ask(user.web('POST', `/api/agents/${agentId}/start?wait=60`));
    await terminal.ask(user.web('GET', `/api/agents/${agentId}/operations`));

    terminal.heading('Remove it');
    await user.remove(agentId);
  }

  async #showGit(agentId: string, write: (content: string) => Promise<unknown>): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('Commit the file, change it, and show the change');
    const git = (action: string) => user.web('GET', `/api/browse/${action}?agentId=${agentId}`);
    await terminal.ask(git('git-status'));
    await terminal.ask(user.web('POST', '/api/browse/git-sync', { agentId, message: 'notes' }));
    await terminal.ask(git('git-log'));
    await write('goodbye');
    await terminal.ask(git('git-diff'));
  }
}
