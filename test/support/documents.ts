import { pino } from 'pino';
import { createBackend } from '../../api/backend/backend.js';
import { createContainersListener } from '../../api/containers/containers.js';
import { createSummarizer } from '../../api/summarizer/summarizer.js';
import { createWeb } from '../../api/web/web.js';
import { createAgentBus } from '../../src/agent-ai-services.js';
import { AgentCallerLookup } from '../../src/agents/credentials/agent-caller-lookup.js';
import { NO_DATABASE } from '../api/http/support.js';
import { databaseAlone } from './dependencies.js';

const url = 'postgres://nobody@127.0.0.1:1/nothing';

/** Returns the OpenAPI documents of all listeners by their names; nothing is started. */
export async function allDocuments(): Promise<Record<string, unknown>> {
  const { close, dependencies } = await databaseAlone({ db: NO_DATABASE, url });
  const { settings } = dependencies;
  const log = pino({ level: 'silent' });
  const listeners = {
    web: createWeb(dependencies),
    backend: createBackend(dependencies),
    agents: createContainersListener({
      ...dependencies,
      ...createAgentBus(dependencies),
      agentCallers: new AgentCallerLookup(NO_DATABASE, settings.accounts),
    }),
    summarizer: createSummarizer({
      chain: settings.chain,
      http: settings.http,
      log,
      // Only the declarations are read.
      pages: {} as Parameters<typeof createSummarizer>[0]['pages'],
    }),
  };
  await close();
  return Object.fromEntries(
    Object.entries(listeners).map(([name, { document }]) => [name, document()]),
  );
}
