// Runs the workflows and the turns of tasks until it is killed. Runs from the build, like the product.
import process from 'node:process';
import { NativeConnection, Worker } from '@temporalio/worker';
import {
  createTaskRunRecordActivities,
  createTaskTurnActivities,
} from '../../../dist-dev/activities/tasks.js';
import { OwnerTurns } from '../../../dist-dev/src/agents/chat/owner-turns.js';
import { TaskRuns } from '../../../dist-dev/src/agents/tasks/task-runs.js';
import { hostLimiters } from '../../../dist-dev/src/agents/watchdog/host-limiters.js';
import { Database } from '../../../dist-dev/src/platform/database/database.js';
import { ringOf } from '../../../dist-dev/src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../dist-dev/src/platform/secrets/secret-box.js';
import { builtWorkflows } from '../../../dist-dev/worker/workflow-code.js';
import { heartbeatsTaskQueue, PLATFORM_TASK_QUEUE } from '../../../dist-dev/workflows/ids.js';

const [, , url, address, namespace, host] = process.argv;
const database = new Database(url, { maxConnections: 5 });
const turns = new OwnerTurns(database, new SecretBox(ringOf(Buffer.alloc(32))));
const runs = new TaskRuns(database, { adminEmails: [] });
const connection = await NativeConnection.connect({ address });
const workers = await Promise.all([
  Worker.create({
    connection,
    namespace,
    ...builtWorkflows(),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createTaskRunRecordActivities({ runs, turns }),
  }),
  Worker.create({
    connection,
    namespace,
    taskQueue: heartbeatsTaskQueue(host),
    activities: createTaskTurnActivities({ runs, turns, limiters: hostLimiters(4) }),
  }),
]);
await Promise.all(workers.map((worker) => worker.run()));
