// Answers e-mails to agents until it is killed. Runs from the build, like the product.
import process from 'node:process';
import { NativeConnection, Worker } from '@temporalio/worker';
import {
  createEmailActivities,
  createEmailRecordActivities,
  createEmailTurnActivities,
} from '../../../dist-dev/activities/email.js';
import { OwnerTurns } from '../../../dist-dev/src/agents/chat/owner-turns.js';
import { AgentEmails } from '../../../dist-dev/src/agents/email/agent-emails.js';
import { Resend } from '../../../dist-dev/src/agents/email/resend.js';
import { hostLimiters } from '../../../dist-dev/src/agents/watchdog/host-limiters.js';
import { Database } from '../../../dist-dev/src/platform/database/database.js';
import { ringOf } from '../../../dist-dev/src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../dist-dev/src/platform/secrets/secret-box.js';
import { loadSettings } from '../../../dist-dev/src/settings.js';
import { builtWorkflows } from '../../../dist-dev/worker/workflow-code.js';
import {
  EMAIL_TASK_QUEUE,
  heartbeatsTaskQueue,
  PLATFORM_TASK_QUEUE,
} from '../../../dist-dev/workflows/ids.js';

const [, , address, namespace, host] = process.argv;
const settings = loadSettings();
const database = new Database(settings.database.url, { maxConnections: 5 });
const turns = new OwnerTurns(database, new SecretBox(ringOf(Buffer.alloc(32))));
const emails = new AgentEmails({
  database,
  provider: new Resend(settings.email),
  settings: settings.email,
  admins: settings.accounts,
});
const connection = await NativeConnection.connect({ address });
const common = { connection, namespace };
const workers = await Promise.all([
  Worker.create({
    ...common,
    ...builtWorkflows(),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createEmailRecordActivities(emails, turns),
  }),
  Worker.create({
    ...common,
    taskQueue: EMAIL_TASK_QUEUE,
    activities: createEmailActivities(emails),
  }),
  Worker.create({
    ...common,
    taskQueue: heartbeatsTaskQueue(host),
    activities: createEmailTurnActivities({ emails, turns, limiters: hostLimiters(4) }),
  }),
]);
process.send?.('ready');
await Promise.all(workers.map((worker) => worker.run()));
