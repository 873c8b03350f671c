import { TestWorkflowEnvironment } from '@temporalio/testing';
import { findTemporalCli } from '../../../dev/temporal/temporal-binary.js';
import { readSettings } from '../../../dev/settings.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../../../workflows/search-attributes.js';

/** Starts a real server, for behaviour that the time-skipping server does not reproduce: time passes. */
export async function realServer(): Promise<TestWorkflowEnvironment> {
  const cli = await findTemporalCli(readSettings(process.env));
  return TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: cli },
      searchAttributes: [AGENT_ID, AGENT_OWNER, AGENT_PHASE],
      extraArgs: ['--dynamic-config-value=history.transferProcessorMaxPollRPS=1000'],
      log: { format: 'pretty', level: 'never' },
    },
  });
}
