// Signs a security event as the identity provider of `npm run dev:accounts` does, and sends it to the
// platform: npm run dev:event -- sessions-revoked ada@example.com
import { sendEvent } from '../dev/accounts/send-event.js';
import { describeFailure } from '../dev/failure.js';
import { say } from '../dev/report.js';
import { readSettings } from '../dev/settings.js';

try {
  const { dataDir, http } = readSettings(process.env);
  await sendEvent({ dataDir, webUrl: http.webUrl }, process.argv.slice(2));
  say('The platform has taken it. In the Temporal UI its run is an applySecurityEvent.');
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
