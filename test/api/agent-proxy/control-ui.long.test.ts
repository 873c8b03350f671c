import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../../dev/root.js';
import { AgentProxy } from '../../../api/agent-proxy/agent-proxy.js';
import { openingPath } from '../../../src/agents/address/owner-ticket.js';
import { GatewayConnections } from '../../../src/agents/hosts/gateway-connections.js';
import { OpenClawLab, READY_MS, TOKENS } from '../../docker/containers/openclaw-lab.js';
import { CHROMIUM, hasBrowser } from '../../support/browser.js';
import { testSecrets } from '../../support/secrets.js';
import { serve, type TestListener } from '../http/support.js';
import { farGateway } from './support.js';

const SUBDOMAIN = 'first-0a1b2c3d';
const SLOW = { timeout: READY_MS };

const secrets = testSecrets();
let lab: OpenClawLab;
let listener: TestListener;
let agentId: string;
/** The agent's address, without its scheme. */
let address: string;

beforeAll(async () => {
  lab = await OpenClawLab.open();
  const { port, ...spec } = await lab.start();
  ({ agentId } = spec);
  const place = { agentId, userId: 'ada', host: 'here', port };
  const find = (subdomain: string) => Promise.resolve(subdomain === SUBDOMAIN ? place : undefined);
  listener = await serve([], {
    otherNames: (shared) =>
      new AgentProxy({
        ...shared,
        secrets,
        domain: 'localhost',
        scheme: 'http',
        agents: { find },
        gateways: new GatewayConnections('here', farGateway),
      }),
  });
  address = `${SUBDOMAIN}.localhost:${listener.port}`;
}, 20 * 60_000);
afterAll(async () => {
  await listener?.close();
  await lab?.close();
});

describe.skipIf(!hasBrowser)("an agent's Control UI in a browser", () => {
  const withToken = `#token=${TOKENS.gatewayToken}`;
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM });
  });
  afterAll(() => browser?.close());

  async function visit(path: string): Promise<Page> {
    const context = await browser.newContext();
    context.setDefaultTimeout(READY_MS);
    const page = await context.newPage();
    await page.goto(`http://${address}${path}`);
    return page;
  }

  const connected = (page: Page) => page.getByText('What can you do?').waitFor();

  test("opens signed in from the dashboard's link, and stays approved", SLOW, async () => {
    const page = await visit(`${openingPath(secrets, agentId)}${withToken}`);
    await connected(page);
    expect(page.url()).not.toContain(TOKENS.gatewayToken);
    await page.context().clearCookies();
    await page.reload();
    await connected(page);
  });

  test('waits for an approval in another browser that has the token', SLOW, async () => {
    const page = await visit(`/${withToken}`);
    await page.getByText('Approve this browser').waitFor();
  });

  test('requires the token in a browser without it', SLOW, async () => {
    const page = await visit('/');
    await page.getByText('This Gateway expects its token').waitFor();
  });
});

test(
  'connects the program of the documentation, which chats without an approval',
  SLOW,
  async () => {
    const page = await readFile(path.join(projectRoot, 'docs', 'api.md'), 'utf8');
    const [, program = ''] = /```js\n(import \{ createHash[^]*?)```/.exec(page) ?? [];
    // Not every system resolves names below localhost as browsers do.
    const resolving = `import dns from 'node:dns'; const { lookup } = dns;
    dns.lookup = (name, ...rest) => lookup(name.replace(/.*[.]localhost$/, '127.0.0.1'), ...rest);`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', resolving + program], {
      cwd: projectRoot,
      env: {
        ...process.env,
        AGENT_WEBSOCKET_URL: `ws://${address}`,
        AGENT_TOKEN: TOKENS.gatewayToken,
      },
    });
    try {
      let output = '';
      child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
      child.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
      await expect.poll(() => output, { timeout: READY_MS }).toContain('Hello from the stub.');
    } finally {
      child.kill();
    }
  },
);
