// The baseline for scheduled tasks: a worker for workflows with one activity that does nothing. A separate program:
// `node bare-schedules.js <Temporal's address> <task queue>`, which reports to its parent when it is ready, and then the
// number of activities that have ended.
import { fileURLToPath } from 'node:url';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

const [address = '', taskQueue = ''] = process.argv.slice(2);
Runtime.install({ logger: new DefaultLogger('WARN') });
let ended = 0;
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address }),
  taskQueue,
  workflowsPath: fileURLToPath(new URL('bare-schedule-workflow.js', import.meta.url)),
  maxCachedWorkflows: 500,
  activities: {
    note: () => {
      process.send?.({ ended: ++ended, at: Date.now() });
      return Promise.resolve();
    },
  },
});
void worker.run();
process.send?.('ready');
process.on('disconnect', () => process.exit());
