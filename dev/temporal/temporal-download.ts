// A separate program: the Temporal SDK downloads its binaries only by starting them, and its native code
// should not stay in the launcher's memory. Arguments: the server, and a folder.
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { TEMPORAL_CLI_VERSION } from './temporal-binary.js';

const [server, downloadDir = ''] = process.argv.slice(2);
const executable = { type: 'cached-download', downloadDir } as const;
const environment =
  server === 'dev'
    ? await TestWorkflowEnvironment.createLocal({
        server: { executable: { ...executable, version: `v${TEMPORAL_CLI_VERSION}` } },
      })
    : await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
await environment.teardown();
