import type { FeedWords } from "./feeds.en.ts";

export const zh: FeedWords = {
  reasons: {
    "duplicate-in-file": "此订阅源在文件前面已出现。",
    "unsubscribed-in-file": "导出该文件的应用已取消订阅。",
    "page-unavailable": "服务器无法获取此网页。",
    "not-selected": "未选择。",
  },
  line: (n: string) => `第 ${n} 行`,
  brokenAt: (n: string) => `文件不完整：从第 ${n} 行开始的标签或注释被截断。未导入任何内容，请从应用中重新导出该文件。`,
  textFileHint: "也可以使用每行一个订阅源网址的文本文件。",
  select: (feed: string) => `选择 ${feed}`,
  selectAll: "全选",
  selectNone: "全不选",
  selected: (n: string, total: string) => `已选择 ${n} / ${total}`,
  folder: "文件夹",
  anyFolder: "所有文件夹",
  noFolder: "无文件夹",
  removed: {
    lead: "你最近在任一设备上移除的订阅。",
    empty: "最近没有移除任何订阅。",
    restore: "恢复",
    restoreLabel: (name: string) => `恢复 ${name}`,
    restoreAll: "全部恢复",
    on: (day: string) => `移除于 ${day}`,
    notRestored: (n: string) => `${n} 个无法恢复。`,
  },
  exports: {
    title: "我的应用在哪里导出？",
    where: "位置",
    none: "没有导出功能。请通过订阅源网址添加其播客。",
  },
  find: {
    button: "查找订阅源",
    searching: "正在查找订阅源…",
    found: (line: string) => `第 ${line} 行是网页，包含以下订阅源：`,
    none: (line: string) => `第 ${line} 行：此网页上未找到订阅源。`,
    feedItself: (line: string) => `第 ${line} 行是订阅源。`,
    failed: (line: string, reason: string) => `第 ${line} 行：${reason}`,
    use: "使用",
    useLabel: (name: string) => `使用 ${name}`,
  },
  servicePage: (service: string, line: string) =>
    `第 ${line} 行是 ${service} 的网页，不是订阅源，应用无法播放。请查找播客自己的网站或 RSS 订阅源。`,
};
