import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { projectRoot } from '../../dev/root.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { RealPlatform } from './platform.js';

const PAGE = readFileSync(path.join(projectRoot, 'docs', 'bus.md'), 'utf8');
const WALK = /^```sh\n([^]*?)^```$/m.exec(PAGE)?.[1] ?? '';

const BACKEND = 'http://127.0.0.1:3001';

let platform: RealPlatform;
let port: string;

beforeAll(async () => {
  const image = await ensureTestImage(connectDocker(process.env.DOCKER_HOST));
  port = String(await freePort());
  platform = await RealPlatform.make({
    AGENT_RUNTIME_IMAGE: image,
    AGENT_AI_HOST: '127.0.0.1', // the agent makes no AI calls
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
  });
  await platform.start();
});
afterAll(() => platform?.close());

/** Runs the walk against this platform. @returns the printed lines. */
async function paste(commands: string): Promise<string[]> {
  const here = commands.replaceAll('9000', port).replaceAll(BACKEND, platform.backendUrl);
  const env = { ...process.env, INTERNAL_API_KEY: platform.internalApiKey };
  const options = { cwd: projectRoot, env, timeout: 90_000 };
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here], options);
  return stdout.split('\n').filter((line) => line !== '');
}

test('the walk delivers a signed message at the second attempt, as Temporal shows', async () => {
  expect(PAGE).toContain('OUTBOUND_ALLOW=127.0.0.1:9000 npm start');
  const printed = (await paste(WALK)).map((line) => JSON.parse(line));
  const [wallet, webhook, sent, received, shown] = printed;
  expect(printed).toHaveLength(5);
  expect(wallet).toMatchObject({ userId: 'operator', agentId: expect.any(String) });
  expect(webhook).toMatchObject({ agentId: wallet.agentId, url: `http://127.0.0.1:${port}/` });
  expect(sent).toEqual({ success: true, messageId: expect.stringMatching(/^message-/) });
  expect(received).toMatchObject({ messageId: sent.messageId, payload: { bookingId: 'b-7' } });
  expect(shown).toMatchObject({
    messageId: sent.messageId,
    status: 'delivered',
    step: 'taken',
    attempts: [
      { status: null, error: expect.any(String) },
      { status: 200, error: null },
    ],
  });

  const [row] = await platform.query<{ id: string }>(
    'SELECT id FROM bus_messages WHERE message_id = $1',
    [sent.messageId],
  );
  await platform.withTemporal(async ({ workflow }) => {
    const run = workflow.getHandle(`bus-message-${row?.id}`);
    expect(await run.result()).toBe('delivered');
    expect((await run.describe()).type).toBe('deliverBusMessage');
    const { events = [] } = await run.fetchHistory();
    const attempts = (events ?? []).map(
      ({ activityTaskStartedEventAttributes: started }) => started?.attempt ?? 0,
    );
    expect(Math.max(...attempts)).toBe(2);
  });
});

test('the program that signs has ten lines', () => {
  const program = /^node --input-type=module <<'EOF'\n([^]*?)^EOF$/m.exec(WALK)?.[1] ?? '';
  expect(program.trimEnd().split('\n')).toHaveLength(10);
});
