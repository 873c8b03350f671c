import type { CallOptions } from './http.js';
import { testPlatform, type TestPlatform, type TestUser } from './platform.js';

type Body = Readonly<Record<string, unknown>>;

/** A user's running agent and its platform, for `/api/agent`. */
export interface AgentActions {
  readonly platform: TestPlatform;
  readonly ada: TestUser;
  readonly agentId: string;
}

/** Starts a platform with a running agent; the watchdog checks too rarely to interfere. */
export async function agentWithActions(): Promise<AgentActions> {
  const platform = await testPlatform({ env: { WATCHDOG_CHECK_INTERVAL: '60m' } });
  const ada = await platform.signUp('network');
  return { platform, ada, agentId: await platform.runningAgent(ada) };
}

/** Returns helpers that act on the agent and read it; `fixture` is called when they run. */
export function actionsOn(fixture: () => AgentActions) {
  const act = (action: string, body: Body = {}, options: CallOptions = {}) => {
    const { platform, ada, agentId } = fixture();
    return platform.web(ada, 'POST', '/api/agent?wait=60', {
      ...options,
      body: { action, agentId, ...body },
    });
  };
  return {
    act,
    setCredential: (name: string, value: string | null, body: Body = {}) =>
      act('set-credential', { name, value, ...body }),
    async readAgent(id = fixture().agentId) {
      const { platform, ada } = fixture();
      return (await platform.web(ada, 'GET', `/api/agent?agentId=${id}`)).body;
    },
  };
}
