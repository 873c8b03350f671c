// Examines the platform of this environment and prints a line for each finding; ends with 1 on a failure.
// Changes nothing: node dist/scripts/doctor.js [--json]
import { parseArgs } from 'node:util';
import { examine, warning, type Check } from '../src/doctor/check.js';
import { chainCheck } from '../src/doctor/chain-check.js';
import { checkClock } from '../src/doctor/clock-check.js';
import { dockerCheck } from '../src/doctor/docker-check.js';
import { ExaminedDatabase } from '../src/doctor/examined-database.js';
import { checkHosts } from '../src/doctor/hosts-check.js';
import { diskCheck, iptablesCheck, nodeCheck } from '../src/doctor/machine-checks.js';
import { mailCheck } from '../src/doctor/mail-check.js';
import { portsCheck } from '../src/doctor/ports-check.js';
import { providersCheck } from '../src/doctor/providers-check.js';
import { hasFailed, reportAsJson, reportAsText } from '../src/doctor/report.js';
import { secretsIn, withoutSecrets } from '../src/doctor/secrets.js';
import { settingsCheck } from '../src/doctor/settings-check.js';
import { checkKeys } from '../src/keys-check.js';
import { migrationSettings } from '../src/platform/database/settings.js';
import { AREAS } from '../src/settings.js';
import { temporalCheck } from '../temporal/temporal-check.js';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    // For the developers' start: the data folder of a platform that does not run, and servers to leave out.
    stopped: { type: 'string' },
    skip: { type: 'string', multiple: true, default: [] },
  },
});

const { env } = process;
const isExamined = (server: string) => !values.skip.includes(server);
const checks = [
  ...(values.stopped === undefined ? [] : [stoppedCheck(values.stopped)]),
  settingsCheck(AREAS),
  nodeCheck(),
  diskCheck,
  iptablesCheck(),
  ...(isExamined('database') ? checksOfDatabase() : []),
  ...(isExamined('temporal') ? [temporalCheck] : []),
  dockerCheck,
  portsCheck(values.stopped === undefined),
  providersCheck,
  mailCheck,
  ...(isExamined('chain') ? [chainCheck] : []),
];

const secrets = secretsIn([...Object.values(AREAS), migrationSettings], env);
const findings = (await examine(checks, env)).map((finding) => ({
  ...finding,
  text: withoutSecrets(finding.text, secrets),
}));
const report = values.json ? reportAsJson(findings) : reportAsText(findings);
// Connections of a hung check are not waited for.
process.stdout.write(`${report}\n`, () => process.exit(hasFailed(findings) ? 1 : 0));

function stoppedCheck(dataDir: string): Check {
  const text = `No platform runs in ${dataDir}: run npm start. Only checks that need no platform are made.`;
  return { name: 'platform', run: () => Promise.resolve([warning(text)]) };
}

function checksOfDatabase(): Check[] {
  const database = new ExaminedDatabase(env);
  return [
    database.check,
    database.checkOf('clock', checkClock),
    database.checkOf('keys', checkKeys),
    database.checkOf('hosts', checkHosts),
  ];
}
