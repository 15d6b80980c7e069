import type { Language } from "../util/languages.ts";

/** `one` or `many` podcasts, devices or the like. */
type Counted = (names: string, count: number) => string;

/** The texts of alerts. Dates and names are inserted as they are to be shown. */
interface AlertWords {
  readonly heading: string;
  readonly more: (count: number) => string;
  readonly untitled: (count: number) => string;
  readonly browserOn: (browser: string, system: string) => string;
  readonly unknownBrowser: string;
  readonly feedGone: { readonly title: Counted; readonly text: (since: string, count: number) => string };
  readonly feedForbidden: { readonly title: Counted; readonly text: (since: string, count: number) => string };
  readonly feedMoved: {
    readonly title: (names: string) => string;
    readonly text: (on: string, count: number) => string;
  };
  readonly someApp: string;
  readonly largeChange: {
    readonly added: (by: string, count: number) => string;
    readonly removed: (by: string, count: number) => string;
    readonly text: (on: string) => string;
    /** It was undone, and the app has done it again. */
    readonly again: (on: string) => string;
  };
  readonly deviceSilent: { readonly title: (device: string) => string; readonly text: (since: string) => string };
  readonly newSession: { readonly title: (browser: string) => string; readonly text: (on: string) => string };
  readonly newToken: { readonly title: (label: string) => string; readonly text: (on: string) => string };
  readonly backupOld: { readonly title: string; readonly text: (last: string) => string };
}

export const ALERT_WORDS: Readonly<Record<Language, AlertWords>> = {
  en: {
    heading: "Earmark alerts",
    more: (count) => `${count} more`,
    untitled: (count) => (count === 1 ? "a podcast without a title" : `${count} podcasts without a title`),
    browserOn: (browser, system) => `${browser} on ${system}`,
    unknownBrowser: "unknown browser",
    feedGone: {
      title: (names) => `No longer found: ${names}`,
      text: (since, count) =>
        count === 1
          ? `The feed has not been found since ${since}. The podcast may have moved or ended. Search for its new feed, or remove it from your list.`
          : `These feeds, all on one server, have not been found since ${since}. The podcasts may have moved or ended. Search for their new feeds, or remove them from your list.`,
    },
    feedForbidden: {
      title: (names) => `Access denied: ${names}`,
      text: (since, count) =>
        count === 1
          ? `The publisher’s server has refused access to this feed since ${since}. If it is a paid feed, your subscription may have ended, or the feed may have a new URL.`
          : `The publisher’s server has refused access to these feeds since ${since}. If they are paid feeds, your subscription may have ended, or the feeds may have new URLs.`,
    },
    feedMoved: {
      title: (names) => `Moved: ${names}`,
      text: (on, count) =>
        count === 1
          ? `The podcast has a new feed URL. Earmark has followed it on ${on}, and your apps get it with the next sync. If it is not the same podcast, undo the change in Earmark under History.`
          : `These podcasts have new feed URLs. Earmark has followed them on ${on}, and your apps get them with the next sync. If they are not the same podcasts, undo the change in Earmark under History.`,
    },
    someApp: "An app",
    largeChange: {
      added: (by, count) => `${by} added ${count} podcasts`,
      removed: (by, count) => `${by} removed ${count} podcasts`,
      text: (on) =>
        `On ${on}, this app changed more than half of your list. If you did not intend that, undo it in Earmark under History.`,
      again: (on) =>
        `You undid that, but on ${on} this app removed the podcasts again. Earmark ignored it. Revoke the app’s token in Earmark under Apps if you no longer trust it.`,
    },
    deviceSilent: {
      title: (device) => `${device} no longer syncs`,
      text: (since) =>
        `This device used to sync regularly. Its last sync was on ${since}. Open the podcast app on it and check its sign-in. If you no longer use the device, forget it in Earmark under Apps.`,
    },
    newSession: {
      title: (browser) => `New sign-in: ${browser}`,
      text: (on) =>
        `Someone signed in to your account on ${on} with a browser that had not been used before. If it was not you, end the session and change your password.`,
    },
    newToken: {
      title: (label) => `New token: ${label}`,
      text: (on) =>
        `A token for an app was created on ${on}. If it was not you, revoke the token and change your password.`,
    },
    backupOld: {
      title: "The last backup is old",
      text: (last) => `The last backup was made on ${last}. Check whether the scheduled backup still runs.`,
    },
  },
  de: {
    heading: "Earmark-Hinweise",
    more: (count) => `${count} weitere`,
    untitled: (count) => (count === 1 ? "ein Podcast ohne Titel" : `${count} Podcasts ohne Titel`),
    browserOn: (browser, system) => `${browser} unter ${system}`,
    unknownBrowser: "unbekannter Browser",
    feedGone: {
      title: (names) => `Nicht mehr zu finden: ${names}`,
      text: (since, count) =>
        count === 1
          ? `Der Feed ist seit dem ${since} nicht mehr zu finden. Vielleicht ist der Podcast umgezogen oder wurde beendet. Suche seinen neuen Feed oder entferne ihn aus deiner Liste.`
          : `Diese Feeds, alle auf demselben Server, sind seit dem ${since} nicht mehr zu finden. Vielleicht sind die Podcasts umgezogen oder wurden beendet. Suche ihre neuen Feeds oder entferne sie aus deiner Liste.`,
    },
    feedForbidden: {
      title: (names) => `Zugriff verweigert: ${names}`,
      text: (since, count) =>
        count === 1
          ? `Der Server des Anbieters verweigert seit dem ${since} den Zugriff auf diesen Feed. Bei einem bezahlten Feed ist vielleicht dein Abo abgelaufen, oder der Feed hat eine neue URL.`
          : `Der Server des Anbieters verweigert seit dem ${since} den Zugriff auf diese Feeds. Bei bezahlten Feeds ist vielleicht dein Abo abgelaufen, oder die Feeds haben neue URLs.`,
    },
    feedMoved: {
      title: (names) => `Umgezogen: ${names}`,
      text: (on, count) =>
        count === 1
          ? `Der Podcast hat eine neue Feed-URL. Earmark hat sie am ${on} übernommen, und deine Apps bekommen sie beim nächsten Synchronisieren. Wenn es nicht derselbe Podcast ist, mache die Änderung in Earmark unter „Verlauf“ rückgängig.`
          : `Diese Podcasts haben neue Feed-URLs. Earmark hat sie am ${on} übernommen, und deine Apps bekommen sie beim nächsten Synchronisieren. Wenn es nicht dieselben Podcasts sind, mache die Änderung in Earmark unter „Verlauf“ rückgängig.`,
    },
    someApp: "Eine App",
    largeChange: {
      added: (by, count) => `${by} hat ${count} Podcasts hinzugefügt`,
      removed: (by, count) => `${by} hat ${count} Podcasts entfernt`,
      text: (on) =>
        `Diese App hat am ${on} mehr als die Hälfte deiner Liste geändert. Wenn das nicht gewollt war, mache es in Earmark unter „Verlauf“ rückgängig.`,
      again: (on) =>
        `Du hast das rückgängig gemacht, aber am ${on} hat diese App die Podcasts wieder entfernt. Earmark hat das ignoriert. Wenn du der App nicht mehr traust, widerrufe ihr Token in Earmark unter „Apps“.`,
    },
    deviceSilent: {
      title: (device) => `${device} synchronisiert nicht mehr`,
      text: (since) =>
        `Dieses Gerät hat regelmäßig synchronisiert, zuletzt am ${since}. Öffne dort die Podcast-App und prüfe die Anmeldung. Wenn du das Gerät nicht mehr benutzt, entferne es in Earmark unter „Apps“.`,
    },
    newSession: {
      title: (browser) => `Neue Anmeldung: ${browser}`,
      text: (on) =>
        `Am ${on} hat sich jemand mit einem bisher nicht benutzten Browser bei deinem Konto angemeldet. Wenn du das nicht warst, beende die Sitzung und ändere dein Passwort.`,
    },
    newToken: {
      title: (label) => `Neues Token: ${label}`,
      text: (on) =>
        `Am ${on} wurde ein Token für eine App erstellt. Wenn du das nicht warst, widerrufe das Token und ändere dein Passwort.`,
    },
    backupOld: {
      title: "Das letzte Backup ist alt",
      text: (last) => `Das letzte Backup ist vom ${last}. Prüfe, ob das regelmäßige Backup noch läuft.`,
    },
  },
  es: {
    heading: "Avisos de Earmark",
    more: (count) => `${count} más`,
    untitled: (count) => (count === 1 ? "un pódcast sin título" : `${count} pódcasts sin título`),
    browserOn: (browser, system) => `${browser} en ${system}`,
    unknownBrowser: "navegador desconocido",
    feedGone: {
      title: (names) => `Ya no se encuentra: ${names}`,
      text: (since, count) =>
        count === 1
          ? `El feed no se encuentra desde el ${since}. Puede que el pódcast se haya mudado o haya terminado. Busca su nuevo feed o quítalo de tu lista.`
          : `Estos feeds, todos en el mismo servidor, no se encuentran desde el ${since}. Puede que los pódcasts se hayan mudado o hayan terminado. Busca sus nuevos feeds o quítalos de tu lista.`,
    },
    feedForbidden: {
      title: (names) => `Acceso denegado: ${names}`,
      text: (since, count) =>
        count === 1
          ? `El servidor del editor deniega el acceso a este feed desde el ${since}. Si es un feed de pago, puede que tu suscripción haya terminado o que el feed tenga otra URL.`
          : `El servidor del editor deniega el acceso a estos feeds desde el ${since}. Si son feeds de pago, puede que tu suscripción haya terminado o que los feeds tengan otras URL.`,
    },
    feedMoved: {
      title: (names) => `Se ha mudado: ${names}`,
      text: (on, count) =>
        count === 1
          ? `El pódcast tiene una nueva URL de feed. Earmark la adoptó el ${on} y tus aplicaciones la recibirán en la próxima sincronización. Si no es el mismo pódcast, deshaz el cambio en Earmark, en Historial.`
          : `Estos pódcasts tienen nuevas URL de feed. Earmark las adoptó el ${on} y tus aplicaciones las recibirán en la próxima sincronización. Si no son los mismos pódcasts, deshaz el cambio en Earmark, en Historial.`,
    },
    someApp: "Una aplicación",
    largeChange: {
      added: (by, count) => `${by} añadió ${count} pódcasts`,
      removed: (by, count) => `${by} quitó ${count} pódcasts`,
      text: (on) =>
        `El ${on}, esta aplicación cambió más de la mitad de tu lista. Si no era tu intención, deshazlo en Earmark, en Historial.`,
      again: (on) =>
        `Lo deshiciste, pero el ${on} esta aplicación volvió a quitar los pódcasts. Earmark lo ignoró. Si ya no confías en la aplicación, revoca su token en Earmark, en Apps.`,
    },
    deviceSilent: {
      title: (device) => `${device} ya no se sincroniza`,
      text: (since) =>
        `Este dispositivo se sincronizaba con regularidad. La última vez fue el ${since}. Abre en él la aplicación de pódcasts y comprueba el inicio de sesión. Si ya no usas el dispositivo, olvídalo en Earmark, en Apps.`,
    },
    newSession: {
      title: (browser) => `Nuevo inicio de sesión: ${browser}`,
      text: (on) =>
        `El ${on} alguien inició sesión en tu cuenta con un navegador que no se había usado antes. Si no fuiste tú, cierra la sesión y cambia tu contraseña.`,
    },
    newToken: {
      title: (label) => `Nuevo token: ${label}`,
      text: (on) =>
        `El ${on} se creó un token para una aplicación. Si no fuiste tú, revoca el token y cambia tu contraseña.`,
    },
    backupOld: {
      title: "La última copia de seguridad es antigua",
      text: (last) =>
        `La última copia de seguridad se hizo el ${last}. Comprueba si la copia programada sigue funcionando.`,
    },
  },
  fr: {
    heading: "Alertes d’Earmark",
    more: (count) => (count === 1 ? "1 autre" : `${count} autres`),
    untitled: (count) => (count === 1 ? "un podcast sans titre" : `${count} podcasts sans titre`),
    browserOn: (browser, system) => `${browser} sous ${system}`,
    unknownBrowser: "navigateur inconnu",
    feedGone: {
      title: (names) => `Introuvable : ${names}`,
      text: (since, count) =>
        count === 1
          ? `Le flux est introuvable depuis le ${since}. Le podcast a peut-être déménagé ou pris fin. Cherchez son nouveau flux ou retirez-le de votre liste.`
          : `Ces flux, tous sur le même serveur, sont introuvables depuis le ${since}. Les podcasts ont peut-être déménagé ou pris fin. Cherchez leurs nouveaux flux ou retirez-les de votre liste.`,
    },
    feedForbidden: {
      title: (names) => `Accès refusé : ${names}`,
      text: (since, count) =>
        count === 1
          ? `Le serveur de l’éditeur refuse l’accès à ce flux depuis le ${since}. Si le flux est payant, votre abonnement a peut-être pris fin, ou le flux a une nouvelle URL.`
          : `Le serveur de l’éditeur refuse l’accès à ces flux depuis le ${since}. Si les flux sont payants, votre abonnement a peut-être pris fin, ou les flux ont de nouvelles URL.`,
    },
    feedMoved: {
      title: (names) => `A déménagé : ${names}`,
      text: (on, count) =>
        count === 1
          ? `Le podcast a une nouvelle URL de flux. Earmark l’a adoptée le ${on}, et vos applications la recevront à la prochaine synchronisation. Si ce n’est pas le même podcast, annulez la modification dans Earmark, sous Historique.`
          : `Ces podcasts ont de nouvelles URL de flux. Earmark les a adoptées le ${on}, et vos applications les recevront à la prochaine synchronisation. Si ce ne sont pas les mêmes podcasts, annulez la modification dans Earmark, sous Historique.`,
    },
    someApp: "Une application",
    largeChange: {
      added: (by, count) => `${by} a ajouté ${count} podcasts`,
      removed: (by, count) => `${by} a retiré ${count} podcasts`,
      text: (on) =>
        `Le ${on}, cette application a modifié plus de la moitié de votre liste. Si ce n’était pas voulu, annulez-le dans Earmark, sous Historique.`,
      again: (on) =>
        `Vous l’avez annulé, mais le ${on} cette application a de nouveau retiré les podcasts. Earmark n’en a pas tenu compte. Si vous ne lui faites plus confiance, révoquez son jeton dans Earmark, sous Applis.`,
    },
    deviceSilent: {
      title: (device) => `${device} ne se synchronise plus`,
      text: (since) =>
        `Cet appareil se synchronisait régulièrement. Sa dernière synchronisation date du ${since}. Ouvrez-y l’application de podcasts et vérifiez la connexion. Si vous n’utilisez plus l’appareil, oubliez-le dans Earmark, sous Applis.`,
    },
    newSession: {
      title: (browser) => `Nouvelle connexion : ${browser}`,
      text: (on) =>
        `Le ${on}, quelqu’un s’est connecté à votre compte avec un navigateur jamais utilisé auparavant. Si ce n’était pas vous, mettez fin à la session et changez votre mot de passe.`,
    },
    newToken: {
      title: (label) => `Nouveau jeton : ${label}`,
      text: (on) =>
        `Un jeton pour une application a été créé le ${on}. Si ce n’était pas vous, révoquez le jeton et changez votre mot de passe.`,
    },
    backupOld: {
      title: "La dernière sauvegarde est ancienne",
      text: (last) =>
        `La dernière sauvegarde date du ${last}. Vérifiez que la sauvegarde planifiée fonctionne toujours.`,
    },
  },
  zh: {
    heading: "Earmark 提醒",
    more: (count) => `另外 ${count} 个`,
    untitled: (count) => `${count} 个没有标题的播客`,
    browserOn: (browser, system) => `${system} 上的 ${browser}`,
    unknownBrowser: "未知浏览器",
    feedGone: {
      title: (names) => `已找不到：${names}`,
      text: (since, count) =>
        count === 1
          ? `自 ${since}起，找不到此订阅源。该播客可能已迁移或停止更新。请查找新的订阅源，或将其从列表中移除。`
          : `自 ${since}起，找不到这些位于同一服务器上的订阅源。这些播客可能已迁移或停止更新。请查找新的订阅源，或将其从列表中移除。`,
    },
    feedForbidden: {
      title: (names) => `访问被拒绝：${names}`,
      text: (since, count) =>
        count === 1
          ? `自 ${since}起，发布者的服务器拒绝访问此订阅源。如果是付费订阅源，你的订阅可能已到期，或者订阅源的网址已更改。`
          : `自 ${since}起，发布者的服务器拒绝访问这些订阅源。如果是付费订阅源，你的订阅可能已到期，或者订阅源的网址已更改。`,
    },
    feedMoved: {
      title: (names) => `已迁移：${names}`,
      text: (on, count) =>
        count === 1
          ? `该播客有了新的订阅源网址。Earmark 已于 ${on}采用，你的应用将在下次同步时收到。如果不是同一个播客，请在 Earmark 的“历史”中撤销更改。`
          : `这些播客有了新的订阅源网址。Earmark 已于 ${on}采用，你的应用将在下次同步时收到。如果不是相同的播客，请在 Earmark 的“历史”中撤销更改。`,
    },
    someApp: "某个应用",
    largeChange: {
      added: (by, count) => `${by} 添加了 ${count} 个播客`,
      removed: (by, count) => `${by} 移除了 ${count} 个播客`,
      text: (on) => `${on}，此应用更改了你列表的一半以上。如果这不是你的本意，请在 Earmark 的“历史”中撤销。`,
      again: (on) =>
        `你已撤销该更改，但此应用在 ${on} 再次移除了这些播客，Earmark 已忽略。如果不再信任此应用，请在 Earmark 的“应用”中撤销其令牌。`,
    },
    deviceSilent: {
      title: (device) => `${device} 不再同步`,
      text: (since) =>
        `此设备以前定期同步，上次同步是在 ${since}。请打开该设备上的播客应用并检查登录状态。如果不再使用该设备，请在 Earmark 的“应用”中将其移除。`,
    },
    newSession: {
      title: (browser) => `新的登录：${browser}`,
      text: (on) => `${on}，有人使用从未用过的浏览器登录了你的账户。如果不是你本人，请结束该会话并更改密码。`,
    },
    newToken: {
      title: (label) => `新的令牌：${label}`,
      text: (on) => `${on}，为一个应用创建了令牌。如果不是你本人，请撤销该令牌并更改密码。`,
    },
    backupOld: {
      title: "上次备份已过时",
      text: (last) => `上次备份是在 ${last}。请检查定期备份是否仍在运行。`,
    },
  },
};
