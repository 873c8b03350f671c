import { expect, test } from 'vitest';
import { checkOf, examine, ok, type Check } from '../../src/doctor/check.js';
import { hasFailed, reportAsJson, reportAsText } from '../../src/doctor/report.js';
import { databaseSettings } from '../../src/platform/database/settings.js';

const well: Check = { name: 'well', run: () => Promise.resolve([ok('All fine.')]) };
const hung: Check = { name: 'hung', run: () => new Promise(() => undefined) };
const broken: Check = { name: 'broken', run: () => Promise.reject(new TypeError('a defect')) };

test('neither a hung check nor a broken one hides the others', async () => {
  const findings = await examine([hung, broken, well], {}, 50);
  expect(findings).toEqual([
    expect.objectContaining({ check: 'hung', status: 'failure' }),
    { check: 'broken', status: 'failure', text: 'The check itself failed: a defect.' },
    { check: 'well', status: 'ok', text: 'All fine.' },
  ]);
  expect(findings[0]?.text).toContain('No result within 0.05 s');
});

test('a check whose settings are wrong refers to the check of settings', async () => {
  const check = checkOf('database', { database: databaseSettings }, () => Promise.resolve([]));
  expect(await examine([check], { DATABASE_URL: 'mysql://x' })).toEqual([
    expect.objectContaining({ status: 'warning', text: expect.stringContaining('Not checked') }),
  ]);
});

test('reports each finding in a line, and counts failures and warnings', async () => {
  const findings = await examine([broken, well], {});
  expect(reportAsText(findings)).toBe(
    [
      'FAILURE  broken  The check itself failed: a defect.',
      'ok       well    All fine.',
      '',
      '1 failure.',
    ].join('\n'),
  );
  expect(hasFailed(findings)).toBe(true);
  expect(JSON.parse(reportAsJson(findings))).toEqual({ ok: false, findings });
  const fine = await examine([well], {});
  expect(reportAsText(fine)).toMatch(/\nAll is well\.$/);
  expect(JSON.parse(reportAsJson(fine))).toEqual({ ok: true, findings: fine });
});
