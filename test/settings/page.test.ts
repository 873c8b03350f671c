import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SETTINGS_PAGE, settingsPage } from '../../scripts/settings-page.js';

test('npm run docs:settings generates docs/settings.md from the declared variables', () => {
  expect(readFileSync(SETTINGS_PAGE, 'utf8')).toBe(settingsPage());
});

test('lists name, value, default in development and production, and meaning', () => {
  const cells = (name: string) =>
    settingsPage()
      .split('\n')
      .find((line) => line.startsWith(`| \`${name}\``))
      ?.split('|')
      .map((cell) => cell.trim())
      .slice(1, -1);
  expect(cells('WATCHDOG_CHECK_INTERVAL')).toEqual([
    '`WATCHDOG_CHECK_INTERVAL`',
    'a positive number of seconds, or like 500ms, 120s, 5m or 1h',
    '`120s`',
    'interval between two checks of a healthy agent',
  ]);
  expect(cells('ENCRYPTION_KEY')?.slice(1, 3)).toEqual([
    'secret: 32 bytes in base64 (openssl rand -base64 32)',
    'required without `ENCRYPTION_KEYS`',
  ]);
  expect(cells('INTERNAL_API_KEY')?.[2]).toBe('none; in production required');
  expect(cells('BOT_DETECTION')?.[2]).toBe('`false`; in production `true`');
  expect(cells('AGENT_HOST_CAPACITY')?.[2]).toBe('derived from the memory of the machine');
});
