import { afterAll, beforeAll, expect, test } from 'vitest';
import { AGENT_RUNTIME_VERSION } from '../../../src/agents/lifecycle/settings.js';
import { measureAgent } from '../../../src/agents/verification/measure-agent.js';
import { containerName, STATE_DIRECTORY } from '../../../src/docker/containers/container-spec.js';
import { gatewayHealth, gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import { SECRETS_FILE } from '../../../src/docker/containers/openclaw-config.js';
import { skillFile } from '../../../src/skills/skill-file.js';
import { shippedSkills } from '../../../src/skills/shipped-skills.js';
import { runInContainer } from '../../support/run-in-container.js';
import { OpenClawLab, READY_MS, TOKENS } from './openclaw-lab.js';

/** Values that are hard to escape in a file, keyed by the names of tool credentials. */
const hard: Readonly<Record<string, string>> = {
  PLAIN: 'sk-1 = "two" # three',
  LINES: "-----BEGIN-----\n'a' ${PLAIN} \\n\n-----END-----\n",
  QUOTES: `it's \`all\``,
  JSON_KEY: '{"key":"-----BEGIN-----\\nabc\\n"}',
  CARRIAGE: "it's\r\ntwo",
  FOLDER: 'C:\\dir\\',
  SPACES: '  kept  ',
  AFTER: '# comment',
};

let lab: OpenClawLab;
beforeAll(async () => {
  lab = await OpenClawLab.open();
}, 20 * 60_000);
afterAll(() => lab?.close());

const SLOW = { timeout: 2 * READY_MS };

test(
  'runs real OpenClaw in the hardened profile and answers through the platform',
  SLOW,
  async () => {
    const { containers, docker } = lab.fixture;
    const shipped = shippedSkills().map((each) => ({ ...each, file: skillFile(each) }));
    const files = Object.fromEntries(shipped.map(({ file, name }) => [name, file]));
    const spec = await lab.start(hard, {}, files);
    const { agentId, port } = spec;

    const { gatewayToken: token } = TOKENS;
    expect(await gatewayHealth(port, { timeoutMs: 30_000 })).toMatchObject({
      healthy: true,
      body: { ok: true, status: 'live' },
    });
    expect(await gatewayReady(port, { timeoutMs: 30_000, token })).toMatchObject({
      body: { ready: true, failing: [] },
    });
    expect(await containers.inspect(agentId)).toMatchObject({
      runtimeVersion: AGENT_RUNTIME_VERSION,
    });

    expect((await lab.ask(port, 'wrong')).status).toBe(401);
    const answer = await lab.ask(port, token);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { role: 'assistant', content: 'Hello from the stub.' } }],
    });
    const [asked] = lab.asked;
    expect(asked?.authorization).toBe(`Bearer ${TOKENS.aiToken}`);
    expect(JSON.parse(asked?.body ?? '')).toMatchObject({ model: 'auto', stream: true });
    // OpenClaw offers the model each skill that it has loaded, with the description of its file.
    for (const { description = '', name } of shipped) {
      expect(asked?.body).toContain(`${name}/SKILL.md`);
      expect(asked?.body).toContain(description.slice(0, 40));
    }

    const whole = JSON.stringify(await docker.getContainer(containerName(agentId)).inspect());
    for (const secret of Object.values(TOKENS)) expect(whole).not.toContain(secret);

    const { checks } = await measureAgent(
      {
        docker: lab.fixture.host,
        specs: {
          specOf: () => Promise.resolve(spec),
          gatewayOf: () => Promise.resolve({ port, gatewayToken: token, hasChannels: false }),
        },
      },
      { agentId, userId: spec.userId, host: 'local' },
      AbortSignal.timeout(30_000),
    );
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);

    // The package with which the runtime parses its variables file.
    const read =
      "const { readFileSync } = require('fs');" +
      "const { parse } = require('/opt/openclaw/node_modules/dotenv');" +
      `console.log(JSON.stringify(parse(readFileSync('${STATE_DIRECTORY}/${SECRETS_FILE}'))))`;
    const variables: unknown = JSON.parse(
      await runInContainer(docker, containerName(agentId), read),
    );
    expect(variables).toMatchObject(hard);
  },
);
