// Runs `npm start` with stand-ins for the mail server, the identity provider and the code host: npm run
// dev:accounts
import { startStandIns } from '../dev/accounts/stand-ins.js';
import { describeFailure } from '../dev/failure.js';
import { say } from '../dev/report.js';
import { makeDataDir, readSettings } from '../dev/settings.js';

try {
  const { dataDir, http } = readSettings(process.env);
  makeDataDir(dataDir);
  const { env } = await startStandIns({ dataDir, webUrl: http.webUrl });
  Object.assign(process.env, env);
  say(
    'Mail is shown here. The identity provider and the code host accept any identity without a password.',
  );
} catch (error) {
  console.error(describeFailure(error));
  process.exit(1);
}
await import('./start.js');
