// Records what test/workflows/replay.test.ts replays: both workflows' histories, from a Temporal
// dev server and on agents that are fakes. To be run for each released change of a workflow:
//
//     npm run build && node dist/scripts/record-histories.js
//
// The files are named by the day. Those that are there already are never written over.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { SCENARIOS } from '../test/workflows/support/history-scenarios.js';
import { historyToText } from '../test/workflows/support/kept-history.js';
import { WorkflowLab } from '../test/workflows/support/workflow-lab.js';
import { provisionAgentId, superviseAgentId } from '../workflows/ids.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../workflows/search-attributes.js';
import { findTemporalCli } from './engines/temporal-binary.js';
import { step } from './report.js';
import { projectRoot } from './root.js';
import { readSettings } from './settings.js';

const folder = path.join(projectRoot, 'test', 'workflows', 'histories');
const day = new Date().toISOString().slice(0, 10);

const lab = await WorkflowLab.open({ environment: devServer });
try {
  await mkdir(folder, { recursive: true });
  for (const [name, play] of Object.entries(SCENARIOS)) await step(name, () => record(name, play));
} finally {
  await lab.close();
}

async function record(scenario: string, play: (typeof SCENARIOS)[string]): Promise<void> {
  await play(lab, lab.agent(scenario));
  const supervisor = await historyOf(superviseAgentId(scenario));
  await keep('supervise-agent', scenario, supervisor);
  if (supervisor.events?.some((event) => event.childWorkflowExecutionStartedEventAttributes)) {
    await keep('provision-agent', scenario, await historyOf(provisionAgentId(scenario)));
  }
}

function historyOf(workflowId: string): Promise<History> {
  return lab.environment.client.workflow.getHandle(workflowId).fetchHistory();
}

async function keep(workflow: string, scenario: string, history: History): Promise<void> {
  const file = path.join(folder, `${day}-${workflow}-${scenario}.json`);
  await writeFile(file, historyToText(history), { flag: 'wx' });
}

async function devServer(): Promise<TestWorkflowEnvironment> {
  const cli = await findTemporalCli(readSettings(process.env).config.cacheDir);
  return TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: cli },
      ip: '127.0.0.1',
      searchAttributes: [AGENT_ID, AGENT_OWNER, AGENT_PHASE],
    },
  });
}
