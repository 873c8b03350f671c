import { randomInt } from 'node:crypto';
import * as z from 'zod';
import type { LocalChain } from '../chain/local-chain.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import { Terminal } from './terminal.js';
import { TourUser, type PlatformFacts } from './tour-user.js';

const NO_PROVIDER = 503;
const UPSTREAM_FAILED = 502;

const opened = z.object({ url: z.string() });
const invited = z.object({ code: z.string() });
const listed = z.object({ feeds: z.array(z.object({ id: z.string() })) });
const createdKey = z.object({ key: z.string() });
const video = z.object({
  video: z.object({ id: z.string(), status: z.string(), url: z.string().nullable() }),
});
const streamed = z.object({
  stream: z.object({ listenUrl: z.string() }),
  sourcePassword: z.string(),
});
const traced = z.object({ traces: z.array(z.object({ id: z.string() })) });

/** The platform's addresses and keys for the tour, and the chain of `npm start`. */
export interface AgentTourFacts extends PlatformFacts {
  readonly chain?: LocalChain | undefined;
}

/** The tour's way to addresses for other programs than HTTP clients. */
export interface Visitor {
  /** Opens the address of the Control UI, as a browser would. */
  readonly visit?: (url: string) => Promise<void>;
  /** Sends to a stream and plays it, as a source and a player would. */
  readonly goLive?: (listenUrl: string, sourcePassword: string) => Promise<void>;
}

/** A new user with an agent, who uses the other parts of the platform as well. */
export class AgentTour {
  readonly #facts: AgentTourFacts;
  readonly #terminal = new Terminal();
  readonly #user: TourUser;

  readonly #visitor: Visitor;

  constructor(facts: AgentTourFacts, visitor: Visitor = {}) {
    this.#facts = facts;
    this.#user = new TourUser(facts, this.#terminal);
    this.#visitor = visitor;
  }

  /** Runs the tour; each tour of an installation registers a new person. @throws StartFailure */
  async go(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    user.introduce();
    terminal.heading('Register, sign in (session in $COOKIE) and get a plan');
    await user.signIn();

    terminal.heading('Create an agent, and wait until the agent runs');
    const agentId = await user.provision('my-agent');

    terminal.heading('Open its Control UI: the address signs a browser in, within a minute');
    const { body } = await terminal.ask(user.web('POST', `/api/agents/${agentId}/open`));
    await this.#visitor.visit?.(opened.parse(body).url);

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

    await this.#listByMcp();

    terminal.heading('Stop it, start it, and list its operations');
    await terminal.ask(user.web('POST', `/api/agents/${agentId}/stop?wait=60`));
    await terminal.ask(user.web('POST', `/api/agents/${agentId}/start?wait=60`));
    await terminal.ask(user.web('GET', `/api/agents/${agentId}/operations`));

    await this.#takeInvite();
    await this.#readFeed();
    await this.#makeVideo();
    await this.#createStream();
    await this.#showFleet();

    terminal.heading('Remove the agent');
    await user.remove(agentId);
  }

  async #listByMcp(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('Create an API key, and list the agents with it as an MCP client does');
    const wanted = { name: 'tour', scopes: ['agents'] };
    const { body } = await terminal.ask(user.web('POST', '/api/keys', wanted));
    const { key } = createdKey.parse(body);
    say(`\nAPI_KEY='${key}'`);
    terminal.hide('API_KEY', key);
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'agents_list', arguments: {} },
    };
    const request = user.backend('POST', '/api/hostmcp/tools', call);
    await terminal.ask({ ...request, headers: { authorization: `Bearer ${key}` } });
  }

  async #takeInvite(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('Make an invite code, which invites once');
    const made = await terminal.ask(user.backend('POST', '/api/invite/generate', { uses: 1 }));
    const { code } = invited.parse(made.body);
    const use = user.backend('POST', '/api/invite/validate', { code });
    await terminal.ask(use);
    await terminal.askAnyway(use);
  }

  async #readFeed(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('List the data feeds, and read the first one');
    const { body } = await terminal.ask(user.web('GET', '/api/datafeeds'));
    const [first] = listed.parse(body).feeds;
    if (!first) return;
    const read = user.web('GET', `/api/datafeeds?feed=${first.id}`);
    if ((await terminal.askUnless(UPSTREAM_FAILED, read)) !== undefined) return;
    say('The server of the feed does not answer this machine, so the tour reads no feed.');
  }

  async #makeVideo(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('Create a video of one second');
    const path = '/api/generate-video';
    const wanted = { prompt: 'A sunrise over the sea', duration: 1 };
    const asked = await terminal.askUnless(NO_PROVIDER, user.web('POST', path, wanted));
    if (asked === undefined) {
      say('No video provider is set up: VIDEO_API_TOKEN=local npm start starts a stand-in.');
      return;
    }
    const { id } = video.parse(asked.body).video;
    const isOver = (body: unknown) =>
      ['completed', 'failed', 'cancelled'].includes(video.parse(body).video.status);
    const { body } = await terminal.until(user.web('GET', `${path}?id=${id}`), isOver);
    const { url } = video.parse(body).video;
    if (url === null) throw new StartFailure('The tour ends here: the video has no file.');
    say('\nTo play it, save its file:');
    say(`curl -sS "${this.#facts.webUrl}${url}" -H "cookie: $COOKIE" -o sunrise.mp4`);
  }

  /** Creates a stream as a holder of the platform's token, if there is a radio. */
  async #createStream(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('Create a stream of the radio');
    const path = '/api/radio/streams';
    if ((await terminal.askUnless(NO_PROVIDER, user.web('GET', path))) === undefined) {
      say('There is no radio: the README shows how npm start runs one.');
      return;
    }
    const { chain } = this.#facts;
    // Skips the first account: `npm start` spends its money.
    const account = chain?.accounts[randomInt(1, chain.accounts.length)];
    if (!chain || !account) {
      say('The tour has no wallet with the token, so it creates no stream.');
      return;
    }
    say('\nAs an account of the chain, which holds the token:');
    const holder = new TourUser(this.#facts, terminal, 'HOLDER');
    await holder.signInByWallet(account, chain.chainId);
    const made = await terminal.askAnyway(holder.web('POST', path, { title: 'Night' }));
    if (made.status >= 300) {
      say('The account may not create a stream, so the tour creates none.');
      return;
    }
    const { sourcePassword, stream } = streamed.parse(made.body);
    const { host, pathname, protocol } = new URL(stream.listenUrl);
    const tls = protocol === 'https:' ? '-tls 1 ' : '';
    say('\nThe first line makes the stream live, the second plays it:');
    say(
      `ffmpeg -re -f lavfi -i sine -b:a 128k -content_type audio/mpeg -f mp3 ${tls}` +
        `"icecast://source:${sourcePassword}@${host}${pathname}"`,
    );
    say(`ffplay "${stream.listenUrl}"`);
    await this.#visitor.goLive?.(stream.listenUrl, sourcePassword);
  }

  async #showFleet(): Promise<void> {
    const [terminal, user] = [this.#terminal, this.#user];
    terminal.heading('See all agents in one graph, and the steps of the first piece of work');
    const path = '/api/mission-control/fleet';
    await terminal.ask(user.web('GET', `${path}/graph`));
    const { body } = await terminal.ask(user.web('GET', `${path}/traces`));
    const first = traced.parse(body).traces.at(-1);
    if (first) await terminal.ask(user.web('GET', `${path}/traces?id=${first.id}`));
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
