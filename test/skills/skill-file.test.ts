// @module-tag attack
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { checkSkillText, MAX_SKILL_BYTES, skillFile } from '../../src/skills/skill-file.js';
import { SHIPPED_SKILLS, shippedSkills } from '../../src/skills/shipped-skills.js';

const NAME = 'weather';
const withFields = (...lines: string[]) => ['---', ...lines, '---', '# Weather'].join('\n');
const written = (content: string) =>
  skillFile({ name: NAME, description: 'Says: "rain"', content });

const INSTALL = '"install": [{"kind": "brew", "formula": "curl"}]';

test.each([
  ['no instructions', '   \n'],
  ['only fields', withFields().replace('# Weather', ' ')],
  ['fields without an end', '---\nname: weather\n# Weather'],
  ['more bytes than allowed', 'é'.repeat(MAX_SKILL_BYTES / 2 + 1)],
  ['a control character', 'a\u0007b'],
  ['a NUL', 'a\0b'],
  ['another name', withFields('name: other')],
  ['another name in quotes', withFields('name: "other"')],
  ['another name in JSON', withFields('name: ["weather"]')],
  ['two names', withFields('name: weather', 'name: other')],
  ['an installer', withFields(`metadata: {"openclaw": {${INSTALL}}}`)],
  [
    'an installer in a value of several lines',
    withFields('metadata:', '  {', '    "openclaw":', `      {${INSTALL}}`, '  }'),
  ],
  ['an installer under a former name', withFields(`metadata: {"clawdbot": {${INSTALL}}}`)],
  ['an installer without a name', withFields(`metadata: {${INSTALL}}`)],
  ['an installer with an escaped key', withFields('metadata: {"openclaw": {"in\\u0073tall": []}}')],
  ['an installer in YAML', withFields('metadata:', '  openclaw:', '    install: []')],
  ['an installer in JSON with comments', withFields('metadata: {"openclaw": {/**/"install": []}}')],
  ['metadata that are a text', withFields('metadata: "{}"')],
  ['metadata that are a list', withFields('metadata: [{}]')],
  ['an alias of YAML', withFields('description: *other')],
  ['a block of YAML', withFields('description: |', '  text')],
  ['a tag of YAML', withFields('description: !!js/function x')],
  ['a key in quotes', withFields('"name": other')],
  ['a merge key', withFields('<<: {"name": "other"}')],
  ['a second document', withFields('...', 'name: other')],
  ['an open quote', withFields(`description: 'open`)],
  ['a field without a value', withFields('description:')],
])('refuses a skill with %s', (_, content) => {
  let refused: unknown;
  try {
    checkSkillText(NAME, content);
  } catch (error) {
    refused = error;
  }
  expect(refused).toBeInstanceOf(BadRequestError);
  expect(String(refused)).toContain('content ');
});

test('writes the checked fields itself, with the name and description of the platform', () => {
  const content = withFields(
    'name: weather',
    'description: other',
    '# a comment',
    "homepage: 'https://a.example/it''s'",
    'user-invocable: true',
    'metadata: {"openclaw": {"emoji": "☔", "__proto__": {"a": 1}}}',
    'license: MIT: no',
  );
  expect(() => checkSkillText(NAME, content)).toThrow('license');
  const allowed = content.replace('MIT: no', 'MIT').replaceAll('\n', '\r\n');
  checkSkillText(NAME, allowed);
  expect(written(allowed)).toBe(
    [
      '---',
      'name: "weather"',
      'description: "Says: \\"rain\\""',
      `homepage: "https://a.example/it's"`,
      'user-invocable: true',
      'metadata: {"openclaw":{"emoji":"☔","__proto__":{"a":1}}}',
      'license: "MIT"',
      '---',
      '',
      '# Weather',
      '',
    ].join('\n'),
  );
});

test('a repeated key of JSON is written as it was checked', () => {
  const content = withFields(`metadata: {"openclaw": {${INSTALL}}, "openclaw": {}}`);
  checkSkillText(NAME, content);
  expect(written(content)).toContain('metadata: {"openclaw":{}}');
  expect(written(content)).not.toContain('install');
});

test('a text without fields gets those of the platform', () => {
  checkSkillText(NAME, '# Weather\n\n---\nname: other\n---\n');
  expect(written('\ufeff# Weather')).toBe(
    '---\nname: "weather"\ndescription: "Says: \\"rain\\""\n---\n\n# Weather\n',
  );
});

test('a text of the maximum length is allowed', () => {
  expect(() => checkSkillText(NAME, 'é'.repeat(MAX_SKILL_BYTES / 2))).not.toThrow();
});

test('every folder of skills is shipped, and each is valid', async () => {
  const folder = path.join(projectRoot, 'skills');
  expect((await readdir(folder)).sort()).toEqual([...SHIPPED_SKILLS].sort());
  for (const { content, description, name, tags } of shippedSkills()) {
    expect(content).toBe(await readFile(path.join(folder, name, 'SKILL.md'), 'utf8'));
    checkSkillText(name, content ?? '');
    expect([description?.length, tags?.length]).toEqual([expect.any(Number), expect.any(Number)]);
  }
});
