// Signs a security event like the identity provider of `npm run dev:accounts`, and sends it to the
// platform: npm run dev:event -- sessions-revoked ada@example.com
import { sendEvent } from '../dev/accounts/send-event.js';
import { describeFailure } from '../dev/failure.js';
import { say } from '../dev/report.js';
import { readSettings } from '../dev/settings.js';

try {
  const { dataDir, http } = readSettings(process.env);
  await sendEvent({ dataDir, webUrl: http.webUrl }, process.argv.slice(2));
  say('The platform accepted the event. Its run in the Temporal UI is of type applySecurityEvent.');
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
